"""The documentation says what the program does: generated parts, links, commands, recipe keys."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from nmt.cli.main import app

from nmt.checking import models_at
from nmt.recipe import Recipe
from nmt.stages.propose import Wish, propose

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
BLOCK = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"", "sh", "bash", "console"}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def generator() -> ModuleType:
    """docs/generate.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(page: Path, languages: set[str]) -> Iterator[str]:
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield text


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


# ---- generated parts


@every_page
def test_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == generator().refreshed(text), f"{page.relative_to(ROOT)} is not up to date: run `make docs`"


def test_the_generated_pages_tell_every_command_and_every_key() -> None:
    commands = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    keys = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    for name in typer.main.get_command(app).commands:
        assert f"## nmt {name}\n" in commands
    for name in ("average", "new", "check"):
        assert re.search(rf"^###? nmt .*{name}$", commands, re.MULTILINE)
    for name in ("batch_tokens", "beta2", "truecase", "sgm", "word_order", "value_width"):
        assert f"\n| `{name}` |" in keys


def test_every_field_of_a_recipe_says_what_it_means() -> None:
    for line in (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").splitlines():
        assert not re.match(r"\| `[a-z_0-9]+` \|.*\|  \|$", line), f"no meaning: {line}"


# ---- links


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{page.name}: {target} leads nowhere"
        assert aim.is_relative_to(ROOT), f"{page.name}: {target} leads out of the repository"
        if anchor and aim.suffix == ".md":
            assert anchor in anchors(aim), f"{page.name}: {target} names no heading of {aim.name}"


# ---- commands


def command_lines(page: Path) -> Iterator[str]:
    """Lines of shell blocks; where some begin with a prompt, the others are output."""
    for block in blocks(page, SHELL):
        lines = block.replace("\\\n", " ").splitlines()
        prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        yield from prompted or lines


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `nmt` in a line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.commenters, words.whitespace_split = "#", True
    parts: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|;&()"):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        if part[:3] == ["python", "-m", "nmt"]:
            part = part[2:]
        if part and Path(part[0]).name == "nmt":
            yield without_redirections(part[1:])


def without_redirections(words: list[str]) -> list[str]:
    kept = []
    rest = iter(words)
    for word in rest:
        if set(word) <= set("<>"):
            next(rest, None)
        else:
            kept.append(word)
    return [word for word in kept if word not in {"...", "…"}]


def parse(arguments: list[str]) -> None:
    """Parse a command line without running it."""
    command: Any = typer.main.get_command(app)
    context = None
    name = "nmt"
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, arguments = command.resolve_command(context, rest)


@every_page
def test_every_command_line_can_be_parsed(page: Path) -> None:
    for line in command_lines(page):
        for arguments in calls(line) if "nmt" in line else ():
            try:
                parse(arguments)
            except typer.Exit:
                pass
            except Exception as problem:
                told = problem.format_message() if hasattr(problem, "format_message") else repr(problem)
                pytest.fail(f"{page.relative_to(ROOT)}: {line.strip()}: {told}")


def options(command: Any) -> Iterator[str]:
    """Every name of every option, those of sub-commands too."""
    for parameter in command.params:
        yield from parameter.opts
    for name in getattr(command, "commands", ()):
        yield from options(command.commands[name])


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "benchmarks"], ids=lambda page: page.name)
def test_every_option_that_is_named_exists(page: Path) -> None:
    existing = {*options(typer.main.get_command(app)), "--help", "--extra-index-url"}  # the last is pip's
    for name in re.findall(r"`(--[a-z_-]+)[^`]*`", prose(page)):
        assert name.replace("_", "-") in existing, f"{page.name}: no command has the option {name}"


def test_wrong_command_lines_would_be_found() -> None:
    assert list(calls("head -n 3 x | nmt translate m --beam 2 > y; nmt score x  # well")) == [
        ["translate", "m", "--beam", "2"],
        ["score", "x"],
    ]
    for wrong in (["fly"], ["translate", "m", "--wings", "2"], ["recipe", "nwe"], ["run", "r", "--from", "nowhere"]):
        with pytest.raises(Exception, match=r"."):
            parse(wrong)


# ---- recipes


def known(key: str) -> bool:
    parts = [part for part in key.split(".") if not part.isdecimal()]
    return any(parts[-1] in model.model_fields for model in models_at(Recipe, parts[:-1]))


def flat(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield prefix + name
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, dict):
                yield from flat(table, f"{prefix}{name}.")


@every_page
def test_every_key_that_is_set_exists(page: Path) -> None:
    for key in re.findall(r"--set [\"']?([a-z][\w.]*)=", page.read_text(encoding="utf-8")):
        assert known(key), f"{page.relative_to(ROOT)}: --set {key}= names no key of a recipe"


@every_page
def test_every_example_of_a_recipe_is_toml_with_known_keys(page: Path) -> None:
    for block in blocks(page, {"toml"}):
        try:
            values = tomllib.loads(block)
        except tomllib.TOMLDecodeError as problem:
            pytest.fail(f"{page.relative_to(ROOT)}: {problem}:\n{block}")
        for key in flat(values):
            assert known(key), f"{page.relative_to(ROOT)}: {key} is no key of a recipe"


def test_the_tutorial_shows_the_recipe_that_is_proposed(tmp_path: Path) -> None:
    corpus, page = ROOT / "data" / "sample-en-de", ROOT / "docs" / "tutorial.md"
    proposed = tmp_path / "software.toml"
    wish = Wish(corpus / "train.en", corpus / "train.de")
    for _ in propose(wish, proposed):
        pass
    text = proposed.read_text(encoding="utf-8")
    for block in blocks(page, {"toml"}):
        assert block in text, "docs/tutorial.md shows another recipe than `nmt recipe new` writes"


def test_wrong_keys_would_be_found() -> None:
    assert known("data.test.0.name") and known("train.schedule.peak") and not known("train.schedule.wings")
    assert not known("trian.steps") and not known("train.steps.more")


GUIDES = [ROOT / "docs" / name for name in ("translating.md", "control.md", "multilingual.md")]


@pytest.mark.parametrize("name", ["translate", "rescore"])
def test_every_option_has_an_example(name: str) -> None:
    shown = {
        word.partition("=")[0].replace("_", "-")
        for page in GUIDES
        for line in command_lines(page)
        if "nmt" in line
        for call in calls(line)
        if call[:1] == [name]
        for word in call
    }
    command: Any = typer.main.get_command(app)
    lacking = [p.opts[0] for p in command.commands[name].params if p.opts[0][0] == "-" and not shown & set(p.opts)]
    assert lacking == [], f"no example in {', '.join(page.name for page in GUIDES)}"
