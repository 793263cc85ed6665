"""A small corpus and vocabularies learned on it, once for all tests of this folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.events import Event
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary

Learn = Callable[..., tuple[Vocabulary, list[Event]]]
DEFAULTS: dict[str, Any] = {
    "kind": "bpe",
    "size": 420,
    "byte_fallback": True,
    "split_digits": True,
    "character_coverage": 1.0,
    "sentences": 1_000_000,
    "seed": 1,
}
WORDS = ["the", "train", "leaves", "at", "noon", "from", "platform", "twelve", "while", "rain", "on", "old", "bridges"]


def corpus(lines: int = 400) -> list[str]:
    """Sentences of a few words with a number now and then."""
    chance = random.Random(7)
    return [
        " ".join(chance.choices(WORDS, k=chance.randint(2, 9)))
        + chance.choice(["", " .", f" {chance.randint(0, 9999)}"])
        for _ in range(lines)
    ]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """The small corpus."""
    return corpus()


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Learn:
    """Learns from lines in a folder of its own: ``learned(lines, size=300)`` gives the vocabulary and the events."""

    def run(lines: list[str], *more: list[str], **settings: Any) -> tuple[Vocabulary, list[Event]]:
        folder: Path = tmp_path_factory.mktemp("learned")
        paths = [folder / f"text.{i}" for i in range(1 + len(more))]
        for path, text in zip(paths, [lines, *more], strict=True):
            path.write_bytes("".join(line + "\n" for line in text).encode())
        output = folder / "bpe" / "vocabulary.model"
        events = list(learn(paths, output, **{**DEFAULTS, **settings}))
        return Vocabulary.load(output), events

    return run


@pytest.fixture(scope="session", params=["bpe", "unigram"])
def vocabulary(request: pytest.FixtureRequest, learned: Learn) -> Vocabulary:
    """A vocabulary with byte fallback, of each kind."""
    size = {"bpe": 420, "unigram": 330}[request.param]
    return learned(corpus(), kind=request.param, size=size)[0]
