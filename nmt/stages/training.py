"""What training reads of the stages before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nmt.batches.shards import Shard
from nmt.batches.temperature import tempered
from nmt.errors import DataError
from nmt.events import Event, Notice
from nmt.files import read_json
from nmt.stages.stage import RunFolder
from nmt.wording import counted


def open_shards(run: RunFolder, split: str) -> tuple[Shard, Shard]:
    """Both sides' ids of "train" or "valid". Raises DataError where they differ in length."""
    source, target = (Shard.open(run.shards / f"{split}.{side}") for side in ("source", "target"))
    if len(source) != len(target):
        raise DataError(
            f"{run.shards}: {split}.source has {counted(len(source), 'sentence')}, {split}.target has {len(target)}",
            "make them again with nmt bpe RECIPE",
        )
    return source, target


def report_of(run: RunFolder) -> dict[str, Any]:
    """What preprocessing said of the text, or nothing."""
    path = run.preprocess / "report.json"
    return dict(read_json(path)) if path.is_file() else {}


def corpora_of(run: RunFolder, temperature: float | None = None) -> list[tuple[int, float]]:
    """Pairs and weight of each training corpus, in the order of their lines; weights as `temperature` makes them."""
    told = report_of(run).get("corpora", ())
    corpora = [(int(corpus["kept"]), float(corpus["weight"])) for corpus in told]
    if temperature is None:
        return corpora
    return tempered(corpora, temperature, [corpus.get("tag") or number for number, corpus in enumerate(told)])


def told_of_corpora(run: RunFolder, temperature: float | None) -> Iterator[Event]:
    """How much of an epoch each corpus is, where a temperature says so."""
    if temperature is None:
        return
    names = [str(corpus["name"]) for corpus in report_of(run).get("corpora", ())]
    counts = [pairs * weight for pairs, weight in corpora_of(run, temperature)]
    for name, count in zip(names, counts, strict=True):
        yield Notice(f"{name}: {count:,.0f} pairs an epoch, {100 * count / sum(counts):.1f} % of all")
