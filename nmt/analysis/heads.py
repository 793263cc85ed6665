"""How the study of a model's heads is shown: a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.analysis.importance import Head, Studied
    from nmt.analysis.measures import Measures

TITLES = ("attention", "layer", "head", "importance", "entropy", "largest", "first", "end", "punct.", "best offset")


def table(studied: Studied) -> Iterator[tuple[str, ...]]:
    """Titles, then a row for each head, layers and heads from 1; before each kind, what uniform weights would give."""
    yield TITLES
    kind = ""
    for head in studied.heads:
        if head.kind != kind:
            kind = head.kind
            yield kind, "", "uniform", "", *_shares(head.uniform, kind), ""
        yield _row(head)


def _row(head: Head) -> tuple[str, ...]:
    measures = head.measures
    place = f"{measures.offset:+d}" if measures.offset else "0"
    offset = (
        f"{place}: {measures.offset_share:.2f} ± {measures.offset_half_width:.2f} ({head.uniform.offset_share:.2f})"
    )
    number = f"{head.importance:+.4f}"
    return head.kind, str(head.layer + 1), str(head.head + 1), number, *_shares(measures, head.kind), offset


def _shares(measures: Measures, kind: str) -> tuple[str, ...]:
    end = "" if kind == "decoder" else f"{measures.end:.2f}"
    rest = f"{measures.first:.2f}", end, f"{measures.punctuation:.2f}"
    return f"{measures.entropy:.2f}", f"{measures.confidence:.2f}", *rest


def as_json(studied: Studied) -> dict[str, Any]:
    """Everything unrounded; layers and heads from 0, as in the weights' arrays."""
    return {
        "pairs": studied.pairs,
        "tokens": studied.tokens,
        "loss": studied.loss,
        "heads": [asdict(head) for head in studied.heads],
    }
