"""Sets held out of a corpus that brings none: how large it is, and random pairs of it in files of their own."""

from __future__ import annotations

import random
from collections.abc import Container, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.corpus.lines import is_blank, read_lines
from nmt.corpus.sources.plain import PlainSource
from nmt.errors import DataError, OutputError
from nmt.events import Caution, Event, Notice, Progress
from nmt.files import write_text_whole
from nmt.wording import counted

HELD_OUT = 1000  # lines of each held-out set; fewer where the corpus is small
FEWEST_PAIRS = 200  # nothing can be held out of less and leave something to learn from
ENOUGH = 20 * HELD_OUT  # distinct pairs of which whole sets are held out
SMALL_SET = 500  # scores on fewer lines say little

Sides = tuple[Path, Path]
Languages = tuple[str, str]


@dataclass(frozen=True)
class Size:
    """What one pass over the corpus has counted."""

    pairs: int
    distinct: int
    """Pairs with text on both sides, equal ones counted once, as far as that matters: up to `ENOUGH`."""
    words: int
    """Of the longer side, which fills the batches."""
    characters: int
    """Of the longer side."""


def count(source: Path, target: Path) -> Generator[Event, None, Size]:
    """Read the corpus once. Raises DataError when the sides are unequal, or hold nothing."""
    pairs, words, characters, seen = 0, [0, 0], [0, 0], set[int]()
    for texts in PlainSource(source, target).pairs():
        pairs += 1
        if len(seen) < ENOUGH and not any(map(is_blank, texts)):
            seen.add(hash(texts))
        for side, text in enumerate(texts):
            words[side] += len(text.split())
            characters[side] += len(text)
        if pairs % 10_000 == 0:
            yield Progress("recipe", pairs, None, "pairs")
    if pairs == 0:
        raise DataError(f"{source}: holds no lines", "name the training files")
    return Size(pairs, len(seen), max(words), max(characters))


def make_way(paths: Sequence[Path], overwrite: bool) -> None:
    """Raises OutputError where one of the files is there already and may not be replaced."""
    there = [path for path in paths if path.exists()]
    if there and not overwrite:
        raise OutputError(f"{there[0]}: is there already", "--overwrite replaces it; --output names another file")


def hold_out(
    files: Sides, size: Size, parts: Sequence[str], stem: Path, languages: Languages, *, seed: int, overwrite: bool
) -> Generator[Event, None, dict[str, Sides]]:
    """Copy seeded random pairs into files of their own; training leaves such pairs out by itself (drop_held_out)."""
    if size.distinct < FEWEST_PAIRS:
        few = counted(size.distinct, "different pair is", "different pairs are")
        if size.pairs < FEWEST_PAIRS:
            few = counted(size.pairs, "pair is", "pairs are")
        raise DataError(
            f"{files[0]}: {few} too few to hold some out (that takes {FEWEST_PAIRS})",
            "name files with --valid-source, --valid-target, --test-source and --test-target",
        )
    each = min(HELD_OUT, size.distinct // 20)
    source, target = languages
    sets = {
        p: (stem.with_name(f"{stem.name}-{p}.{source}"), stem.with_name(f"{stem.name}-{p}.{target}")) for p in parts
    }
    make_way([path for paths in sets.values() for path in paths], overwrite)
    chosen = _sample(files, size.pairs, each * len(parts), seed)
    for i, part in enumerate(parts):
        own = sorted(chosen[i :: len(parts)])
        for side, path in enumerate(sets[part]):
            write_text_whole(path, "".join(texts[side] + "\n" for _, texts in own))
        kind = Caution if len(own) < SMALL_SET else Notice
        few = "; scores on so few lines swing by several points" if len(own) < SMALL_SET else ""
        held = counted(len(own), "random pair is", "random pairs are")
        yield kind(f"{part} set: {held} held out in {sets[part][0]} and {sets[part][1]}{few}")
    return sets


def _sample(files: Sides, pairs: int, wanted: int, seed: int) -> list[tuple[int, tuple[str, str]]]:
    """`wanted` distinct pairs with text on both sides, with their line numbers, in random order."""
    generator = random.Random(f"{seed}:held-out")
    found = _distinct(files, set(generator.sample(range(pairs), min(pairs, 2 * wanted + 100))))
    if len(found) < wanted:  # most are the same: look at all
        found = _distinct(files, range(pairs))
    shuffled = sorted((number, texts) for texts, number in found.items())
    generator.shuffle(shuffled)
    return shuffled[:wanted]


def _distinct(files: Sides, candidates: Container[int]) -> dict[tuple[str, str], int]:
    """Pairs with text on both sides at the `candidates`' lines, and the line where each comes first."""
    found: dict[tuple[str, str], int] = {}
    for number, texts in enumerate(zip(read_lines(files[0]), read_lines(files[1]), strict=True)):
        if number in candidates and len(found) < ENOUGH and not any(map(is_blank, texts)):
            found.setdefault(texts, number)
    return found
