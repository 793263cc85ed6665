"""The app and the error boundary.  A command's file is imported when it is asked for: `nmt --help` stays fast."""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from . import show
from .help import WIDEST, Command, Group
from .usage import tell

COMMANDS: dict[str, str] = {  # in the order of --help; cli/FILE.py holds a function of that name, or a sub-app `app`
    "run": "run",
    "preprocess": "preprocess",
    "bpe": "bpe",
    "train": "train",
    "average": "average",
    "translate": "translate",
    "score": "score",
    "rescore": "rescore",
    "encode": "encode",
    "decode": "decode",
    "lm": "lm",
    "lexicon": "lexicon",
    "recipe": "recipe",
    "checkpoint": "checkpoint",
    "attention": "attention",
    "report": "report",
    "download": "download",
}
PLAIN_HELP: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}
SETTINGS: dict[str, Any] = {
    "token_normalize_func": lambda name: name.replace("_", "-"),  # either spelling of a flag
    "help_option_names": ["--help", "-h"],
    "max_content_width": WIDEST,
}
FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def load(name: str) -> Any:
    """The command `name`, its file imported."""
    module = importlib.import_module(f".{COMMANDS[name]}", __package__)
    if hasattr(module, "app"):
        return typer.main.get_group(module.app)
    single = typer.Typer(**PLAIN_HELP)
    single.command(name, cls=Command)(getattr(module, name))
    return typer.main.get_command(single)


class Loaded(MutableMapping[str, Any]):
    """Commands by name; a look-up imports the one file."""

    def __init__(self) -> None:
        self.ready: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.ready:
            if name not in COMMANDS:
                raise KeyError(name)
            self.ready[name] = load(name)
            self.ready[name].name = name
        return self.ready[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self.ready[name] = command

    def __delitem__(self, name: str) -> None:
        del self.ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(Group):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Loaded()


app = typer.Typer(
    **{**PLAIN_HELP, "add_completion": True}, cls=Commands, context_settings=SETTINGS, no_args_is_help=True
)


def _version(wanted: bool) -> None:
    if wanted:
        from nmt import __version__

        print(f"nmt {__version__}")
        raise typer.Exit


@app.callback()
def nmt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks; may stand anywhere.")] = False,
) -> None:
    """Neural machine translation from raw parallel text to scored translations.

    Results go to stdout, everything else to stderr.

    Example: nmt run recipes/sample.toml
    """


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (by default the process's own) and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    debug = "--debug" in arguments[:end]
    arguments = [a for i, a in enumerate(arguments) if a != "--debug" or i > end]
    command = typer.main.get_command(app)
    if "_NMT_COMPLETE" in os.environ:
        return int(command.main(args=arguments, prog_name="nmt", standalone_mode=False) or 0)
    if isinstance(sys.stdout, io.TextIOWrapper):  # results are UTF-8 in any locale, and paths of any bytes can be told
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    if isinstance(sys.stdin, io.TextIOWrapper):  # a byte that is no text is for whoever reads it to tell
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    show.silence(False)
    show.listen()
    with _sigterm_unwinds():
        return _guarded(command, arguments, debug)


def _guarded(command: Any, arguments: list[str], debug: bool) -> int:
    from nmt.errors import NmtError, SettingsError

    try:
        return _status(command, arguments)
    except KeyboardInterrupt as stop:
        _hand_on()
        saved = hasattr(stop, "status")  # a stage was asked to end, and did
        show.say("interrupted; the same command goes on from here" if saved else "interrupted")
        return getattr(stop, "status", 128 + signal.SIGINT)
    except BrokenPipeError:  # whoever read our output has seen enough; leave as `cat` does
        _drop_stdout()
        return 128 + signal.SIGPIPE
    except NmtError as problem:
        _hand_on()
        if debug:
            raise
        from .options import in_options

        said = in_options(problem.problem) if isinstance(problem, SettingsError) else problem.problem
        show.error(said, problem.hint)
        return getattr(problem, "status", 1)
    except OSError as problem:
        if debug or problem.errno not in FULL_DISK:
            raise
        _drop_stdout()
        show.error(f"{problem.filename or 'stdout'}: cannot be written: {problem.strerror}", "make room there")
        return 1
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # the parser's own complaints have it
            raise
        return tell(problem, arguments, COMMANDS)


def _status(command: Any, arguments: list[str]) -> int:
    """The command's exit status, once what it printed has reached its reader."""
    status = 0
    try:
        with command.make_context("nmt", arguments) as context:
            command.invoke(context)
    except typer.Exit as done:
        status = done.exit_code
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _hand_on() -> None:
    """What was printed before a problem reaches its reader; if that is the problem, it is dropped."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _drop_stdout()


def _drop_stdout() -> None:
    """Nothing more can be written: what Python flushes at its end goes nowhere, without a complaint."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass


@contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """SIGTERM ends the process with status 143, but lets unfinished files be removed on the way out."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
