"""What training reads of the stages before it."""

from __future__ import annotations

from typing import Any

from nmt.batches.shards import Shard
from nmt.errors import DataError
from nmt.files import read_json
from nmt.stages.stage import RunFolder


def open_shards(run: RunFolder, split: str) -> tuple[Shard, Shard]:
    """Both sides' ids of "train" or "valid". Raises DataError where they differ in length."""
    source, target = (Shard.open(run.shards / f"{split}.{side}") for side in ("source", "target"))
    if len(source) != len(target):
        raise DataError(
            f"{run.shards}: {split}.source has {len(source)} sentences, {split}.target has {len(target)}",
            "make them again with nmt bpe RECIPE",
        )
    return source, target


def report_of(run: RunFolder) -> dict[str, Any]:
    """What preprocessing said of the text, or nothing."""
    path = run.preprocess / "report.json"
    return dict(read_json(path)) if path.is_file() else {}


def corpora_of(run: RunFolder) -> list[tuple[int, float]]:
    """Pairs and weight of each training corpus, in the order of their lines."""
    return [(int(corpus["kept"]), float(corpus["weight"])) for corpus in report_of(run).get("corpora", ())]
