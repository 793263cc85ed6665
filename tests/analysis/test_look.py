"""A sentence's attention: the model's own translation or a given one, subwords or words, JSON."""

from __future__ import annotations

import json

import pytest
import torch
from analysis.conftest import SENTENCE
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nmt.analysis.capture import KINDS
from nmt.analysis.look import Look, as_json, look, merged, weights_of
from nmt.analysis.words import words
from nmt.errors import DataError
from nmt.search.translate import Translator


def test_without_a_target_the_models_own_translation_is_looked_at(ours: Translator, found: Look) -> None:
    translation = next(ours.stream([SENTENCE]))
    assert (found.target, found.given) == (translation.text, False)
    assert found.subwords.written == (*translation.best.tokens, "</s>")
    assert found.subwords.read == ("<s>", *translation.best.tokens)
    assert found.subwords.source == (*translation.source_tokens, "</s>")


def test_the_beam_is_that_of_the_search(ours: Translator) -> None:
    for beam in (1, 4):
        assert look(ours, SENTENCE, beam=beam).target == ours.translate([SENTENCE], beam=beam)[0]


def test_weights_are_those_of_the_model_stepping_through_its_translation(ours: Translator, found: Look) -> None:
    from nmt.analysis.capture import recording

    source = ours.source_vocabulary.encode(ours.source_cleaner.clean(SENTENCE))
    model, eos = ours.model, ours.target_vocabulary.eos
    src_BS = torch.tensor([[*source, eos]])
    pieces = {ours.target_vocabulary.piece(i): i for i in range(len(ours.target_vocabulary))}
    with torch.inference_mode(), recording(model) as notes:
        memory = model.encode(src_BS, src_BS > 0)
        state = model.start(memory, src_BS > 0)
        for piece in found.subwords.read:
            _, state = model.step(state, torch.tensor([pieces[piece]]))
    for (kind, layer), kept in notes.items():
        rows = kept[0][0] if kind == "encoder" else None
        for t, weights_BHQK in enumerate(kept):
            expected = found.subwords.weights[kind][layer][:, t, : weights_BHQK.size(-1)]
            assert_close(weights_BHQK[0, :, 0] if rows is None else rows[:, t], expected, atol=1e-5, rtol=0)


def test_a_given_target_is_read_as_it_is(ours: Translator) -> None:
    found = look(ours, SENTENCE, "kor bal")
    assert (found.target, found.given) == ("kor bal", True)
    ids = [ours.source_vocabulary.encode(SENTENCE), ours.target_vocabulary.encode("kor bal")]
    for kind, weights in weights_of(ours, *ids).items():
        assert torch.equal(weights, found.subwords.weights[kind])


def test_an_empty_target_is_the_step_that_writes_the_end_mark(ours: Translator) -> None:
    found = look(ours, "bal", "")
    assert found.subwords.written == found.words.written == ("</s>",)
    assert found.subwords.weights["decoder"].shape[-2:] == (1, 1)


def test_blank_and_overlong_sentences_are_refused(ours: Translator) -> None:
    with pytest.raises(DataError, match="blank"):
        look(ours, " \u200b")
    with pytest.raises(DataError, match=r"the sentence has 20. tokens .* takes 64 at once"):
        look(ours, "bal kor " * 100)


@pytest.mark.parametrize("units", ["subwords", "words"])
def test_json_holds_the_tensors_own_numbers(found: Look, units) -> None:
    data = json.loads(as_json(found, units, model="runs/x"))
    grid = found.grid(units)
    assert (data["model"], data["source"], data["target"]) == ("runs/x", SENTENCE, found.target)
    assert data["target_is"] == "translation" and data["units"] == units
    for kind in KINDS:
        weights_LHQK = torch.tensor(data["weights"][kind])
        assert_close(weights_LHQK, grid.weights[kind], atol=1e-4, rtol=0)
        rows, columns = grid.axes(kind)
        assert weights_LHQK.shape[-2:] == (len(rows), len(columns))
    assert data["source_tokens"] == list(grid.source) and data["written_tokens"] == list(grid.written)


def test_words_are_spelled_as_readers_know_them(ours: Translator, found: Look) -> None:
    assert found.words.source == ("bal", "gem", ",", "kor", *found.words.source[4:-1], "</s>")
    assert " ".join(found.words.source[4:-1]).replace(" ", "") == "<b>dan</b>&amp;€▁x"


def test_merging_sums_over_keys_and_averages_over_queries() -> None:
    weights = torch.tensor([[[[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [1.0, 0.0, 0.0]]]])
    groups = [range(0, 2), range(2, 3)]
    assert_close(merged(weights, groups, groups), torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]]]))


def test_merged_rows_sum_to_one_and_what_is_masked_holds_nothing(found: Look) -> None:
    for grid in (found.subwords, found.words):
        for kind in KINDS:
            assert_close(grid.weights[kind].sum(-1), torch.ones(grid.weights[kind].shape[:-1]), atol=1e-5, rtol=0)
        for row, seen in enumerate(grid.visible):
            assert not grid.weights["decoder"][:, :, row, seen:].any()
            assert grid.weights["decoder"][:, :, row, :seen].all()


PIECES = st.lists(st.sampled_from(["▁", "▁da", "b", "▁.", ".", "!", "<0xE2>", "▁<0xE2>", "'"]), max_size=12)


@settings(max_examples=200)
@given(PIECES)
def test_words_are_all_pieces_in_order(pieces: list[str]) -> None:
    assert [i for word in words(pieces) for i in word] == list(range(len(pieces)))
    for word in words(pieces):
        assert not any(pieces[i].startswith("▁") for i in word[1:])


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["▁The", "▁fi", "le", "."], ["▁The", "▁file", "."]),
        (["▁“", "it", "'", "s", "”", "."], ["▁“", "it's", "”."]),
        (["▁...", "▁x"], ["▁...", "▁x"]),
        (["▁", "<0xE2>", "<0x82>", "<0xAC>", "5"], ["▁<0xE2><0x82><0xAC>5"]),
        (["▁", "“", "it", "▁", "."], ["▁“", "it", "▁."]),
    ],
)
def test_punctuation_around_a_word_counts_by_itself(pieces: list[str], expected: list[str]) -> None:
    assert ["".join(pieces[i] for i in word) for word in words(pieces)] == expected
