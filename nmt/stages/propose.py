"""Propose a recipe for somebody's own files: settings by the corpus's size, each with its reason beside it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.checkpoint.layout import read_description, resolve
from nmt.corpus.sources.source import language_of
from nmt.errors import RecipeError
from nmt.events import Event, Notice
from nmt.files import write_text_whole
from nmt.recipe import read
from nmt.stages.held_out import Size, count, hold_out, make_way
from nmt.stages.propose_tuning import tuned_settings
from nmt.wording import counted

MANY_CHARACTERS = {"zh", "ja", "yue"}


@dataclass(frozen=True)
class Wish:
    """What the user named: files and, where they cannot be guessed, languages. Empty is left to us."""

    source: Path
    target: Path
    valid: tuple[Path, Path] | None = None
    test: tuple[Path, Path] | None = None
    source_language: str = ""
    target_language: str = ""
    name: str = ""
    seed: int = 1
    start_from: Path | None = None
    """A model to fine-tune."""


def propose(wish: Wish, output: Path, overwrite: bool = False) -> Iterator[Event]:
    """Write a commented recipe to `output`, and beside it whatever held-out sets are missing.

    Raises DataError for unequal or unreadable files, RecipeError where a language can't be told, OutputError where a
    file is in the way.
    """
    description = read_description(resolve(wish.start_from)) if wish.start_from else None
    known = description.languages if description else None
    languages = (
        wish.source_language or (known.source if known else _language(wish.source, "--source-lang")),
        wish.target_language or (known.target if known else _language(wish.target, "--target-lang")),
    )
    if wish.source.exists() and wish.target.exists() and wish.source.samefile(wish.target):
        raise RecipeError(
            f"{wish.source}: is both source and target",
            'name two files; for one of tab-separated columns write [[data.train]] file = "…" (docs/data.md)',
        )
    make_way([output], overwrite)
    size = yield from count(wish.source, wish.target)
    name = wish.name or _name(output, languages)
    held_out = {part: pair for part, pair in (("valid", wish.valid), ("test", wish.test)) if pair is not None}
    missing = [part for part in ("valid", "test") if part not in held_out]
    if missing:
        stem = output.with_name(name)
        files = wish.source, wish.target
        held_out |= yield from hold_out(files, size, missing, stem, languages, seed=wish.seed, overwrite=overwrite)
    if description and wish.start_from:
        start = _relative(wish.start_from, output.parent)
        settings = tuned_settings(description, start, _steps(size, choose(size.pairs)))
    else:
        settings = _settings(languages, size)
    text = _compose(name, wish, languages, size, held_out, output.parent, missing) + settings
    write_text_whole(output, text)
    read(output)  # what we propose must be a recipe
    yield Notice(f"{output}: a recipe for {counted(size.pairs, 'pair')}, {languages[0]} → {languages[1]}")


def _name(output: Path, languages: tuple[str, str]) -> str:
    """A name for the run: the recipe's own, unless that says nothing."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", output.stem).strip("-.")
    return stem if stem not in {"", "recipe"} else "-".join(languages)


def _language(path: Path, option: str) -> str:
    """The language that a name such as train.en.gz tells, else RecipeError."""
    code = language_of(path)
    if code is None:
        raise RecipeError(f"{path}: its name tells no language", f"give it, like {option} en")
    return code


@dataclass(frozen=True)
class Choice:
    """Settings for a corpus of some size."""

    preset: str
    pieces: int
    dropout: float
    batch_tokens: int
    accumulate: int
    epochs: int
    peak: float
    optimizer: str = "adam"
    length_penalty: str = "gnmt:0.6"


def choose(pairs: int) -> Choice:
    """Settings that have served corpora of about this many pairs."""
    if pairs < 5_000:
        return Choice("tiny", 3_000, 0.3, 1024, 1, 36, 2e-3)
    if pairs < 20_000:
        return Choice("tiny", 4_000, 0.3, 1024, 1, 24, 2e-3)
    if pairs < 100_000:
        return Choice("small", 8_000, 0.2, 2048, 1, 12, 4e-3, "muon", "average:1")
    if pairs < 300_000:
        return Choice("small", 8_000, 0.2, 4096, 1, 10, 4e-3, "muon", "average:1")
    if pairs < 3_000_000:
        return Choice("medium", 16_000, 0.1, 4096, 2, 10, 1e-3)
    return Choice("medium", 32_000, 0.1, 8192, 3, 10, 1e-3)


def _steps(size: Size, choice: Choice) -> int:
    """Updates of so many passes, to two digits: a word is about 1.4 pieces, and padding takes a tenth of a batch."""
    updates = max(200.0, choice.epochs * _epoch(size, choice))
    unit = 10 ** (math.floor(math.log10(updates)) - 1)
    return round(updates / unit) * unit


def _epoch(size: Size, choice: Choice) -> float:
    """Updates of one pass."""
    tokens = max(size.words * 1.4, size.characters / 4) + size.pairs
    return tokens / (0.9 * choice.batch_tokens * choice.accumulate)


def _compose(
    name: str,
    wish: Wish,
    languages: tuple[str, str],
    size: Size,
    held_out: dict[str, tuple[Path, Path]],
    folder: Path,
    made: Sequence[str],
) -> str:
    """The text of the recipe."""
    source, target, valid_source, valid_target, test_source, test_target = (
        _quoted(_relative(path, folder)) for path in (wish.source, wish.target, *held_out["valid"], *held_out["test"])
    )
    valid_note, test_note = (
        "  # copied from the corpus; drop_held_out keeps these pairs out of training" * (part in made)
        for part in ("valid", "test")
    )
    return f"""\
# Made by `nmt recipe new` for {counted(size.pairs, "pair")}.
# Paths count from this file's folder. `nmt recipe show` prints every other setting with its default.

name = {_quoted(name)}
seed = {wish.seed}

[languages]
source = {_quoted(languages[0])}
target = {_quoted(languages[1])}

[[data.train]]                    # repeat for more corpora; weight = 2.0 would count one twice
source = {source}
target = {target}

[data.valid]{valid_note}
source = {valid_source}
target = {valid_target}

[[data.test]]{test_note}
name = "test"
source = {test_source}
target = {test_target}

[preprocess]
max_words = 150                   # longer pairs are rare, costly, and often misaligned
drop_held_out = true              # no training pair shares a side with a validation or test pair
"""


def _settings(languages: tuple[str, str], size: Size) -> str:
    """The recipe's text from subwords on, for training from the beginning."""
    choice = choose(size.pairs)
    steps = _steps(size, choice)
    passes = max(choice.epochs, round(steps / _epoch(size, choice)))
    warmup, often = max(1, steps // 10), max(1, steps // 20)
    coverage = "\ncharacter_coverage = 0.9995       # many rare characters: spell them as bytes" * bool(
        MANY_CHARACTERS & {re.split("[-_]", language)[0] for language in languages}
    )
    return f"""\

[bpe]
size = {choice.pieces:<6}                     # few pieces for little text, so that each is seen often
shared = true                     # one vocabulary: names and numbers look alike on both sides{coverage}

[model]
preset = {_quoted(choice.preset):<24} # {_ABOUT[choice.preset]}
dropout = {choice.dropout:<23} # the less text, the more

[train]
steps = {steps:<25} # about {passes} passes over the corpus
batch_tokens = {choice.batch_tokens:<18} # tokens of a batch, padding included; halve it if memory runs out
accumulate = {choice.accumulate:<20} # batches of one update
optimizer.kind = {_quoted(choice.optimizer):<16} # {_LEARNS[choice.optimizer]}
clip_norm = 1.0                   # keeps a rare wild gradient from undoing much
validate_every = {often * 2:<16} # ten times in all
save_every = {often:<20} # the last five are averaged

[train.schedule]
kind = "linear"                   # rise, then fall to nothing at the last update
peak = {choice.peak:<26} # high, which pre-norm models stand
warmup_steps = {warmup:<18} # a tenth of all

[translate]
beam = 4
length_penalty = {_quoted(choice.length_penalty)}
"""


_LEARNS = {
    "adam": "the usual one",
    "muon": "learns in about half of the updates that adam needs",
}
_ABOUT = {
    "tiny": "2 + 2 layers, 192 wide: enough for up to about 20,000 pairs",
    "small": "3 + 3 layers, 256 wide: up to about 300,000 pairs",
    "medium": "6 + 6 layers, 512 wide: up to some millions of pairs",
}


def _relative(path: Path, folder: Path) -> str:
    """`path` seen from the recipe's folder; absolute where that would climb far."""
    relative = os.path.relpath(path, folder)
    return str(path.absolute()) if relative.startswith("../../../") else relative


def _quoted(text: str) -> str:
    import tomli_w

    return tomli_w.dumps({"v": text}).removeprefix("v = ").strip()
