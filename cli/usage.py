"""What is said of a command line that is none: what is wrong, and the nearest right name, or the help to read."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from . import show


def tell(problem: Any, arguments: Sequence[str], commands: Iterable[str]) -> int:
    """Say what the parser complains of, one thing to do, and return the exit status."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "nmt"
    message = str(problem.format_message()).strip()
    if not message or type(problem).__name__ == "NoArgsIsHelpError":
        print(context.get_help() if context is not None else message, file=sys.stderr)
        return 2
    message = re.split(r"\.? (?:Did you mean|\(Possible options:) ", message)[0].removesuffix(".")
    message = message.replace(": Value error, ", ": ")
    show.error(message[:1].lower() + message[1:], _hint(problem, message, arguments, commands) or f"{path} --help")
    return int(problem.exit_code)


def _hint(problem: Any, message: str, arguments: Sequence[str], commands: Iterable[str]) -> str:
    if near := ", ".join(_nearest(problem, message, commands)):
        return f"did you mean {near}?"
    if "unexpected extra argument" not in message:
        return ""
    for option, value in pairwise(arguments):
        if option == "--set" and "=" not in value:
            return f"--set takes KEY=VALUE as one word, such as --set {value}=…"
    context = getattr(problem, "ctx", None)
    takes_text = context is not None and any(one.name == "sentence" for one in context.command.params)
    return 'a SENTENCE of several words stands in quotes: "A man."' if takes_text else ""


def _nearest(problem: Any, message: str, commands: Iterable[str]) -> list[str]:
    """Options, commands or values that a wrong name may have meant, the likeliest first."""
    if one_of := re.search(r"'([^']*)' is not one of (.*)$", message):
        return difflib.get_close_matches(one_of[1], re.findall(r"'([^']*)'", one_of[2]), n=2)
    given = re.search(r"'([^']*)'$|(--?\S+)$", message)
    names = list(getattr(problem, "possibilities", None) or ())
    if not names and message.startswith("No such command"):
        context = getattr(problem, "ctx", None)
        names = list(commands) if context is None else context.command.list_commands(context)
    return difflib.get_close_matches((given[1] or given[2]) if given else "", names, n=2)
