"""The command line: parse, call one library function, show.  Installed as nmt.cli."""

from .main import main

__all__ = ["main"]
