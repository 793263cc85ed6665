"""`python -m nmt` is the command `nmt`."""

from nmt.cli.process import run

if __name__ == "__main__":
    run()
