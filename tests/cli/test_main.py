"""What holds for every command: help, exit status, spelling of flags, errors in two lines, streams."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from nmt.cli import screen, show
from rich.cells import cell_len
from rich.console import Console

from nmt import __version__
from nmt.errors import NmtError
from nmt.events import Caution, Notice, Progress
from nmt.wording import span

main_module = sys.modules["nmt.cli.main"]
Shell = Callable[..., CompletedProcess[bytes]]


def every_command() -> Iterator[tuple[str, ...]]:
    for name in main_module.COMMANDS:
        command = main_module.load(name)
        yield (name,)
        yield from ((name, sub) for sub in getattr(command, "commands", ()))


COMMANDS = list(every_command())


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Replaces the command `average` by one that raises."""

    def install(error: BaseException) -> None:
        app = typer.Typer()

        @app.command()
        def average() -> None:
            raise error

        monkeypatch.setattr(main_module, "load", lambda name: typer.main.get_command(app))

    return install


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_has_an_example_that_begins_with_a_command(nmt, command) -> None:
    ended = nmt(*command, "--help")
    assert ended.status == 0 and ended.err == ""
    text = " ".join(ended.out.split())
    assert "Example: nmt " in text or "Example: echo" in text
    assert "Usage: nmt " + " ".join(command) in text


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in {("recipe",), ("checkpoint",)}], ids=" ".join)
def test_every_help_says_what_is_read_and_written(nmt, command) -> None:
    text = nmt(*command, "--help").out.lower()
    assert "read" in text
    assert any(word in text for word in ("write", "print", "give"))


@pytest.mark.parametrize("columns", [80, 300])
def test_help_fits_the_terminal_and_cuts_no_sentence(nmt, monkeypatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ((), ("recipe",), ("checkpoint",)):
        text = nmt(*command, "--help").out
        widths = [len(line) for line in text.splitlines()]
        assert max(widths) <= min(columns, 120) and max(widths) > min(columns, 120) - 30
        assert "..." not in text.replace("[ARGS]...", "").replace("REFERENCE...", "")
        assert "Commands:" in text and text.rstrip().endswith(".")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_names_arguments_and_choices_as_manuals_do(nmt, command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = nmt(*command, "--help").out
    usage = next(line for line in text.splitlines() if line.startswith("Usage: "))
    assert re.fullmatch(r"Usage: nmt( [a-z]+)+ \[OPTIONS\]( \[?[A-Z]+\]?(\.\.\.)?)*( \[ARGS\]\.\.\.)?", usage)
    assert not re.search(r"<(list|path|str|int)|\{", text)


def test_options_of_one_matter_stand_together(nmt) -> None:
    parts = nmt("translate", "--help").out.split("\n\n")
    sampling = next(part for part in parts if part.startswith("Sampling:"))
    assert all(name in sampling for name in ("--sample", "--temperature", "--top-k", "--top-p", "--seed"))
    assert "--beam" not in sampling and "--top-k" not in next(part for part in parts if part.startswith("Options:"))


def test_the_version_is_the_packages(nmt) -> None:
    assert nmt("--version").out == f"nmt {__version__}\n"


def test_no_command_shows_the_help_as_wrong_usage(nmt) -> None:
    ended = nmt()
    assert ended.status == 2 and ended.out == "" and "Commands:" in ended.err


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (["trian", "x"], "no such command 'trian'", "did you mean train?"),
        (["run", "--dry-rum", "x"], "no such option: --dry-rum", "did you mean --dry-run?"),
        (["run"], "missing argument 'RECIPE'", "nmt run --help"),
        (["run", "x", "y"], "got unexpected extra argument", "nmt run --help"),
        (["recipe", "shwo", "x"], "no such command 'shwo'", "did you mean show?"),
        (["score", "x", "--metric", "blue"], "'-m': 'blue' is not one of", "did you mean bleu"),
        (["run", "x", "--set", "train.steps", "10"], "extra argument", "--set takes KEY=VALUE as one word"),
        (["attention", "x", "A", "man"], "got unexpected extra argument", "a SENTENCE of several words stands in qu"),
        (["run", "x", "--only", "bp"], "invalid value for '--only': 'bp' is no stage; did you mean bpe?", "nmt run"),
        (["run", "x", "--only", "bpe", "--to", "bpe"], "--only stands alone", "nmt"),
    ],
)
def test_wrong_usage_is_status_2_with_the_nearest_name(nmt, arguments, problem, hint) -> None:
    ended = nmt(*arguments)
    assert ended.status == 2 and ended.out == ""
    first, second = ended.err.splitlines()
    assert problem in first and first.startswith("error: ")
    assert second.startswith(f"hint: {hint}")


def test_flags_may_be_spelled_with_underscores_and_values_stay_as_they_are(nmt, toy: Path) -> None:
    (toy / "my_file.toml").write_text((toy / "toy.toml").read_text())
    ended = nmt("run", "my_file.toml", "--dry_run", "--run_dir", "some_where", "--set", "train.valid_lines=1")
    assert ended.status == 0 and ended.out.startswith("preprocess: has not run yet")
    assert nmt("run", "my_file.toml", "--dry-run", "--run_dir=some_where", "--set=train.valid_lines=1") == ended


def test_an_abbreviated_flag_is_not_taken_for_the_whole(nmt, toy: Path) -> None:
    assert nmt("run", "toy.toml", "--dry").status == 2


def test_a_problem_is_two_lines_and_status_1(nmt, failing) -> None:
    failing(NmtError("a.toml:3: width = 250 is wrong", "248 is right"))
    ended = nmt("average")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == "error: a.toml:3: width = 250 is wrong\nhint: 248 is right\n"


def test_debug_shows_where_a_problem_came_from(nmt, failing) -> None:
    failing(NmtError("no"))
    with pytest.raises(NmtError):
        nmt("average", "--debug")


def test_a_bug_keeps_its_traceback(nmt, failing) -> None:
    failing(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        nmt("average")


def test_control_characters_of_data_do_not_reach_the_terminal(nmt, failing) -> None:
    failing(NmtError("line \x1b[31mred\x07 \x9b1m"))
    assert nmt("average").err == "error: line \ufffd[31mred\ufffd \ufffd1m\n"


def test_interruption_is_status_130_and_termination_143(nmt, failing) -> None:
    failing(KeyboardInterrupt())
    assert nmt("average").status == 130
    before = signal.getsignal(signal.SIGTERM)

    app = typer.Typer()
    cleaned: list[bool] = []

    @app.command()
    def average() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            cleaned.append(True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main_module, "load", lambda name: typer.main.get_command(app))
        with pytest.raises(SystemExit) as stop:
            nmt("average")
    assert stop.value.code == 143 and cleaned
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_closed_pipe_ends_quietly(shell: Shell, toy: Path) -> None:
    for line in (
        "nmt recipe show toy.toml | true",
        "nmt recipe show toy.toml | head -n 1",
        "nmt --help | true",
        "nmt run toy.toml --dry-run --quiet | true",
    ):
        ended = shell(line + "; exit ${PIPESTATUS[0]}")
        assert ended.returncode in {0, 141}, (line, ended)
        assert ended.stderr == b"", line


def test_a_full_disk_behind_stdout_is_an_error(shell: Shell, toy: Path) -> None:
    ended = shell("nmt recipe show toy.toml > /dev/full")
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"error: stdout: cannot be written: No space left on device\nhint: ")


def test_a_failing_stage_of_a_pipe_writes_nothing_to_stdout(shell: Shell, toy: Path) -> None:
    ended = shell("echo hi | nmt translate nowhere | cat; exit ${PIPESTATUS[1]}")
    assert ended.returncode == 1 and ended.stdout == b"" and ended.stderr.startswith(b"error: nowhere")


@pytest.mark.parametrize("variables", [{}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONCOERCECLOCALE": "0"}], ids=str)
def test_results_are_utf8_in_any_locale(shell: Shell, toy: Path, variables: dict[str, str]) -> None:
    (toy / "toy.toml").write_text((toy / "toy.toml").read_text().replace("train.aa", "züge.aa"), encoding="utf-8")
    ended = shell("nmt recipe show toy.toml", LC_ALL="C", **variables)
    assert ended.returncode == 0 and "züge.aa".encode() in ended.stdout
    missing = shell("nmt preprocess toy.toml", LC_ALL="C", **variables)
    assert missing.returncode == 1 and missing.stderr.count(b"error: ") == 1


EVENTS = [Progress("count", 1, 10, "lines"), Notice("hello"), Caution("careful"), Progress("count", 10, 10, "lines")]


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show.progress(EVENTS)
    assert capsys.readouterr() == ("", "hello\nwarning: careful\n")


def test_plain_lines_come_seldom_with_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(float(second) for second in range(1000))
    monkeypatch.setattr(show.time, "monotonic", lambda: next(clock))
    show.progress(Progress("count", 100 * done, 10_000, "lines") for done in range(31))
    assert capsys.readouterr().err.splitlines() == [
        "count: 200 of 10,000 lines, 100/s, 1 min 38 s left",
        "count: 1,200 of 10,000 lines, 100/s, 1 min 28 s left",
        "count: 2,200 of 10,000 lines, 100/s, 1 min 18 s left",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show.silence(True)
    show.progress(EVENTS)
    show.caution("careful")
    show.silence(False)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("color", [True, False])
def test_a_terminal_gets_bars_and_no_color_is_respected(color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not color:
        monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    show.progress(EVENTS)
    text = terminal.getvalue()
    assert "1/10" in text and "warning: careful" in text and "\r" in text
    assert ("\x1b[3" in text or "\x1b[9" in text) == color


PARTS = ["1,002/1,100 updates", "38 min 35 s left", "epoch 1", "loss 7.595", "1,002 tokens/s", "lr 2.75e-04"]


@pytest.mark.parametrize("width", [*range(1, 30), 80, 100, 120, 160])
def test_a_bar_shows_whole_parts_in_the_order_of_their_importance(width: int) -> None:
    shown = screen.fitted(PARTS, width).split(", ")
    assert shown == PARTS[: len(shown)]
    assert len(", ".join(shown)) <= width or len(shown) == 1
    assert len(", ".join(PARTS[: len(shown) + 1])) > width or shown == PARTS


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_a_bar_is_one_line_of_any_window_with_count_time_left_epoch_and_loss(width: int) -> None:
    counter = screen.Counter("train", screen.time.monotonic() - 100, 0, 1_002, 101_100, "updates", PARTS[2:])
    line = screen.drawn(counter, width, Console(width=width, file=io.StringIO()))
    assert line.cell_len < width
    assert "1,002/101,100 updates" in line.plain and " left, epoch 1, loss 7.595" in line.plain


def test_a_narrower_window_leaves_nothing_of_wider_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr", terminal)
    with screen.Screen() as shown:
        shown.count("train", 1, 1_000, "updates", PARTS[2:])
        before, (wide,) = len(terminal.getvalue()), shown.drawn
        shown.console.width = 40
        shown.live.refresh()
        assert terminal.getvalue()[before:].count("\x1b[1A") == (wide - 1) // 40 > 0


@given(st.text("ab  -/ä語", max_size=60), st.integers(4, 30))
@example("aaa 語 ", 6)
def test_lines_on_a_terminal_break_between_words_alone(line: str, width: int) -> None:
    pieces = list(screen.folded(line, width))
    assert " ".join(pieces).split() == line.split()
    assert all(cell_len(piece) <= width or len(piece.split()) == 1 for piece in pieces)


@pytest.mark.parametrize(("results", "bars"), [("-", False), ("file", True)])
def test_where_results_stand_on_the_terminal_there_is_no_bar(
    results: str, bars: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", terminal)
    show.progress(EVENTS, results=results)
    assert ("1/10" in terminal.getvalue()) == bars and "warning: careful" in terminal.getvalue()


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    show.progress(EVENTS)
    assert terminal.getvalue() == "hello\nwarning: careful\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (12.4, "12 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_spans_read_well(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_completion_offers_commands_and_flags(shell: Shell) -> None:
    ended = shell("nmt", _NMT_COMPLETE="complete_bash", COMP_WORDS="nmt tr", COMP_CWORD="1")
    assert {b"train", b"translate"} <= set(ended.stdout.split())
    ended = shell("nmt", _NMT_COMPLETE="complete_bash", COMP_WORDS="nmt run --dr", COMP_CWORD="2")
    assert b"--dry-run" in ended.stdout
