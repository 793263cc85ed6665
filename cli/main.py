"""The app and the error boundary."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    return 0
