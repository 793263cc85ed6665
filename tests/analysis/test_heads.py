"""What heads do and what they are worth, against sums written out pair by pair."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from search.models import CONFIG, sentences, translator
from torch import Tensor

from nmt.analysis.capture import KINDS, places
from nmt.analysis.heads import TITLES, as_json, table
from nmt.analysis.importance import Head, Studied, study, without
from nmt.analysis.look import look, weights_of
from nmt.analysis.measures import OFFSETS
from nmt.analysis.words import is_punctuation
from nmt.checking import check
from nmt.errors import DataError
from nmt.events import Caution, Progress
from nmt.model.config import TransformerConfig
from nmt.search.translate import Translator
from nmt.subwords.vocabulary import Vocabulary

SOURCES = [f"{line} ." for line in sentences(7, 9, seed=3)]
TARGETS = [f"( {line}" for line in sentences(7, 7, seed=4)]


def studied(ours: Translator, sources: list[str], targets: list[str]) -> Studied:
    *_, last = study(ours, sources, targets)
    assert isinstance(last, Studied)
    return last


@pytest.fixture(scope="module")
def result(ours: Translator) -> Studied:
    return studied(ours, SOURCES, TARGETS)


def pairs(ours: Translator) -> list[tuple[list[int], list[int]]]:
    source, target = ours.source_vocabulary, ours.target_vocabulary
    return [(source.encode(s), target.encode(t)) for s, t in zip(SOURCES, TARGETS, strict=True)]


def rows_of(ours: Translator, head: Head) -> list[tuple[int, list[float], list[int]]]:
    """Every row of one head: its number, the weights it may give, and the ids of their keys."""
    rows = []
    for source, target in pairs(ours):
        weights_QK = weights_of(ours, source, target)[head.kind][head.layer, head.head].tolist()
        keys = (
            [ours.target_vocabulary.bos, *target] if head.kind == "decoder" else [*source, ours.source_vocabulary.eos]
        )
        for q, row in enumerate(weights_QK):
            seen = q + 1 if head.kind == "decoder" else len(row)
            rows.append((q, row[:seen], keys[:seen]))
    return rows


def test_measures_are_means_over_all_rows(ours: Translator, result: Studied) -> None:
    vocabulary = ours.target_vocabulary
    for head in result.heads:
        rows = rows_of(ours, head)
        for found, alike in ((head.measures, False), (head.uniform, True)):
            shares = [(q, [1 / len(row)] * len(row) if alike else row, keys) for q, row, keys in rows]

            def mean(values: list[float]) -> float:
                return sum(values) / len(rows)  # noqa: B023

            expected = {
                "entropy": mean([-sum(w * math.log(w) for w in row if w > 0) for _, row, _ in shares]),
                "confidence": mean([max(row) for _, row, _ in shares]),
                "first": mean([row[0] for _, row, _ in shares]),
                "end": mean([row[k] for _, row, keys in shares for k in range(len(row)) if keys[k] == vocabulary.eos]),
                "punctuation": mean(
                    [
                        row[k]
                        for _, row, keys in shares
                        for k in range(len(row))
                        if is_punctuation(vocabulary.piece(keys[k]))
                    ]
                ),
                "offset_share": mean(
                    [row[q + found.offset] for q, row, _ in shares if 0 <= q + found.offset < len(row)]
                ),
            }
            for name, value in expected.items():
                assert getattr(found, name) == pytest.approx(value, abs=1e-5), (head.kind, name)
        others = [
            sum(row[q + offset] for q, row, _ in rows if 0 <= q + offset < len(row)) / len(rows) for offset in OFFSETS
        ]
        assert head.measures.offset_share == pytest.approx(max(others), abs=1e-5)
        assert head.uniform.offset == head.measures.offset


def test_importance_is_the_rise_of_the_loss_without_the_head(ours: Translator, result: Studied) -> None:
    marks = ours.target_vocabulary

    @torch.no_grad()
    def loss() -> float:
        total, count = 0.0, 0
        for source, target in pairs(ours):
            src_BS, tgt_BT = torch.tensor([[*source, marks.eos]]), torch.tensor([[marks.bos, *target]])
            seen_BS = torch.ones_like(src_BS, dtype=torch.bool)
            log_p_TV = ours.model.decode(ours.model.encode(src_BS, seen_BS), seen_BS, tgt_BT)[0].log_softmax(-1)
            total -= sum(row[label].item() for row, label in zip(log_p_TV, [*target, marks.eos], strict=True))
            count += len(target) + 1
        return total / count

    base, found = loss(), ours.rescore(SOURCES, TARGETS)
    rescored = -sum(c.log_probability for c in found) / sum(len(c.token_log_probabilities) for c in found)
    assert [result.loss, rescored] == pytest.approx([base, base], abs=1e-5)
    assert len({round(head.importance, 6) for head in result.heads}) > 4
    where = {(place.kind, place.layer): place for place in places(ours.model)}
    for head in result.heads:
        with without(where[head.kind, head.layer], head.head):
            assert head.importance == pytest.approx(loss() - base, abs=1e-5)


def test_a_head_switched_off_is_one_whose_output_columns_are_zero(ours: Translator) -> None:
    place = next(place for place in places(ours.model) if place.kind == "cross")
    weight: Tensor = place.module.output.weight
    width = weight.size(1) // place.module.heads
    with without(place, 1):
        expected = look(ours, SOURCES[0], TARGETS[0]).subwords.weights["cross"][1]
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            weight[:, width:] = 0
        found = look(ours, SOURCES[0], TARGETS[0]).subwords.weights["cross"][1]
    finally:
        with torch.no_grad():
            weight.copy_(kept)
    torch.testing.assert_close(found, expected)


def test_every_head_is_told_once_in_order_and_the_model_is_left_alone(ours: Translator, result: Studied) -> None:
    places_of = [(head.kind, head.layer, head.head) for head in result.heads]
    assert places_of == sorted(set(places_of), key=lambda p: (KINDS.index(p[0]), *p[1:]))
    assert len(places_of) == sum(place.module.heads for place in places(ours.model))
    assert not any("mix" in place.module.__dict__ for place in places(ours.model))


def test_progress_is_told_and_what_is_left_out_is_named(ours: Translator) -> None:
    events = list(study(ours, [*SOURCES[:2], "", "bal " * 100], [*TARGETS[:2], "bal", "kor"]))
    assert [event.text for event in events if isinstance(event, Caution)] == [
        "2 pairs were left out: a side is blank or too long for the model"
    ]
    assert sum(isinstance(event, Progress) for event in events) == len(events[-1].heads)
    assert events[-1].pairs == 2


def test_unequal_or_empty_corpora_are_refused(ours: Translator) -> None:
    with pytest.raises(DataError, match="--source has 2 lines, --target 1"):
        list(study(ours, ["a", "b"], ["c"]))
    with pytest.raises(DataError, match="no pair is left"):
        list(study(ours, [""], [""]))


def test_the_order_of_pairs_changes_nothing(ours: Translator, result: Studied) -> None:
    other = studied(ours, SOURCES[::-1], TARGETS[::-1])
    for one, two in zip(result.heads, other.heads, strict=True):
        assert one.importance == pytest.approx(two.importance, abs=1e-5)
        assert one.measures.entropy == pytest.approx(two.measures.entropy, abs=1e-6)


def test_the_table_has_a_row_a_head_and_one_for_uniform_weights(result: Studied) -> None:
    rows = list(table(result))
    assert rows[0] == TITLES and {len(row) for row in rows} == {len(TITLES)}
    assert [row[2] for row in rows[1:]].count("uniform") == 3
    assert len(rows) == 1 + 3 + len(result.heads)
    data = as_json(result)
    assert data["heads"][0]["measures"]["entropy"] == result.heads[0].measures.entropy


def test_the_loss_of_a_model_in_training_is_without_dropout(vocabulary_path, result: Studied) -> None:
    ours = translator(vocabulary_path)
    ours.model.train()
    try:
        assert studied(ours, SOURCES, TARGETS).loss == pytest.approx(result.loss, abs=1e-6)
        assert ours.model.training
    finally:
        ours.model.eval()


def test_the_interval_of_an_offset_is_that_of_drawing_sentences(ours: Translator, result: Studied) -> None:
    for head in result.heads:
        sums, rows = [], []
        for source, target in pairs(ours):
            weights_QK = weights_of(ours, source, target)[head.kind][head.layer, head.head]
            sums.append(float(weights_QK.diagonal(head.measures.offset).sum()))
            rows.append(weights_QK.size(0))
        share = sum(sums) / sum(rows)
        residue = sum((s - share * n) ** 2 for s, n in zip(sums, rows, strict=True))
        assert head.measures.offset_half_width == pytest.approx(1.96 * math.sqrt(residue) / sum(rows), abs=1e-6)
        assert head.uniform.offset_half_width == 0


def test_a_model_that_has_learned_nothing_shows_no_roles(vocabulary_path: Path) -> None:
    size = len(Vocabulary.load(vocabulary_path))
    wide = {"width": 128, "encoder_layers": 2, "attention": {"heads": 4}}
    model = check(TransformerConfig, {**CONFIG.model_dump(), **wide}, "model").build(size, size, 0)
    model.initialize(torch.Generator().manual_seed(3))
    sources, targets = ([f"{a} . {b} ." for a in lines[:6] for b in lines[-3:]] for lines in (SOURCES, TARGETS))
    result = studied(translator(vocabulary_path, model=model.eval()), sources, targets)
    for kind in KINDS:
        heads = [head for head in result.heads if head.kind == kind]
        for name in ("first", "end", "punctuation", "offset_share"):
            for head in heads if name == "offset_share" else ():
                assert head.measures.offset_share == pytest.approx(head.uniform.offset_share, abs=0.08)
            excess = [getattr(head.measures, name) - getattr(head.uniform, name) for head in heads]
            assert abs(sum(excess)) / len(heads) < 0.05, (kind, name)
