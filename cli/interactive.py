"""nmt translate --interactive: a prompt on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from nmt.errors import NmtError
from nmt.events import Caution

from . import show

if TYPE_CHECKING:
    from nmt.search.control.session import Session

PROMPT = "> "


def converse(session: Session, greeting: str) -> None:
    """Read lines until the input ends; translations go to stdout, everything else to stderr."""
    show.say(f"{greeting}; :help tells what can be changed, Ctrl-D ends")
    read = _reader()
    while True:
        try:
            line = read()
            if line.strip() in {":quit", ":q", ":exit"}:
                return
            if line.startswith(":") and not line.startswith("::"):
                _show(session.command(line[1:]), show.say)
            else:
                _show(session.translate(line.removeprefix(":") if line.startswith("::") else line), _result)
        except EOFError:
            show.say("")
            return
        except KeyboardInterrupt:
            show.say("")


def _show(lines: Iterator[str] | Iterator[str | Caution], write: Callable[[str], None]) -> None:
    try:
        for line in lines:
            if isinstance(line, Caution):
                show.say(f"({line.text})")
            else:
                write(line)
    except NmtError as problem:
        show.error(problem.problem, problem.hint)


def _result(line: str) -> None:
    print(line, flush=True)


def _reader() -> Callable[[], str]:
    """Lines from a terminal with its editing and history, or from whatever stdin is; EOFError at the end."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401  input() then edits
        return lambda: _whole(input(PROMPT))

    def read() -> str:
        if sys.stdin.isatty():
            sys.stderr.write(PROMPT)
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return _whole(line.rstrip("\n"))

    return read


def _whole(line: str) -> str:
    """What was typed as text: bytes that are none become U+FFFD."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
