"""Alignments: inside the sentence, the same in any batch, and where the attention looks."""

from __future__ import annotations

from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import random_model, sentences, translator

from nmt.batches.batch import collate
from nmt.search.align import Words, _places, aligned, attention_BTS
from nmt.search.translate import Translator

LINES = [*sentences(12, 8, seed=41), "bal \u3000 kor\u00a0dem", "Zürich 中文 gom", "  bal", ""]


def test_every_word_has_one_link_within_the_sentences(random_translator: Translator) -> None:
    for t in random_translator.stream(LINES, n_best=3, alignment=True):
        for candidate in t.alternatives:
            links = candidate.alignment or ()
            assert [j for _, j in sorted(links, key=lambda link: link[1])] == list(range(len(candidate.text.split())))
            assert all(0 <= i < len(t.source.split()) for i, _ in links)
            assert list(links) == sorted(links)


def test_asking_changes_no_translation_and_batches_no_alignment(random_translator: Translator) -> None:
    usual = list(random_translator.stream(LINES, alignment=True))
    assert [t.text for t in usual] == random_translator.translate(LINES)
    assert all(t.best.alignment is None for t in random_translator.stream(LINES))
    single = list(random_translator.stream(LINES, alignment=True, batch_tokens=1))
    assert [t.best.alignment for t in single] == [t.best.alignment for t in usual]


def test_split_lines_have_one_alignment(random_translator: Translator) -> None:
    line = "bal kor. dem gom ban. bar bel kar."
    (t,) = random_translator.stream([line], alignment=True, max_source_tokens=10)
    assert t.cautions
    assert {j for _, j in t.best.alignment or ()} == set(range(len(t.text.split())))


def test_attention_is_that_of_the_step_that_writes_and_the_model_is_left_as_it_was() -> None:
    model = random_model(40)
    batch = collate([[5, 6, 7], [8, 9]], [[10, 11], [12, 13, 14]], bos=2, eos=3, pad=0)
    crossing = model.decoder.layers[0].cross_attention  # type: ignore[union-attr]
    with torch.inference_mode():
        before = model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
        looked_BTS = attention_BTS(model, batch)
        assert torch.equal(model(batch.src_BS, batch.keep_BS, batch.tgt_BT), before)
    assert "mix" not in vars(crossing)
    assert looked_BTS.shape == (2, 4, 4)
    assert torch.allclose(looked_BTS.sum(-1), torch.ones(2, 4), atol=1e-5)
    assert not looked_BTS[1, :, 3].any()


@settings(max_examples=60)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20))
def test_pieces_belong_to_the_words_that_they_spell(random_translator: Translator, text: str) -> None:
    vocabulary = random_translator.target_vocabulary
    ids = vocabulary.encode(text)
    words = Words(text, [ids], vocabulary)
    assert words.count == len(text.split())
    assert len(words.of[0]) == len(ids)
    spelled = {word for word in words.of[0] if word >= 0}
    assert spelled == set(range(words.count))
    assert words.of[0] == sorted(words.of[0])


@settings(max_examples=60)
@given(data=st.data())
def test_the_places_of_pieces_are_those_of_the_text_so_far(random_translator: Translator, data: st.DataObject) -> None:
    """Whatever the pieces are: bytes that make no character, marks, a character in several pieces."""
    vocabulary = random_translator.target_vocabulary
    written = vocabulary.encode(data.draw(st.text("a \u4e2d\U0010ff00\U0010ff0a\u2581\ufffd\x85é", max_size=9)))
    drawn = st.lists(st.one_of(st.sampled_from([*written, 0]), st.integers(0, len(vocabulary) - 1)), max_size=9)
    ids = [*data.draw(drawn), *written, *data.draw(drawn)]
    ends = ["".join(vocabulary.decode(ids[:i]).rstrip("\ufffd").split()) for i in range(len(ids) + 1)]
    expected = [len(text) - (len(text) > len(before)) for before, text in pairwise(ends)]
    assert _places(ids, vocabulary) == (expected, "".join(vocabulary.decode(ids).split()))


def test_words_are_found_again_where_the_text_was_changed_between(random_translator: Translator) -> None:
    vocabulary = random_translator.target_vocabulary
    cleaned = vocabulary.encode("bal &apos;kor&apos; . dem")
    words = Words("bal 'kor'. dem", [cleaned], vocabulary)
    assert words.of[0][0] == 0
    assert words.of[0][-1] == 2
    assert words.of[0] == sorted(words.of[0])


def test_each_target_word_takes_the_source_word_it_looks_at_most(random_translator: Translator) -> None:
    vocabulary = random_translator.target_vocabulary
    source, target = Words("bal kor", [[*vocabulary.encode("bal kor")]], vocabulary), None
    ids = vocabulary.encode("dem")
    target = Words("dem", [ids], vocabulary)
    for word in (0, 1):
        map_TS = torch.zeros(len(ids), len(source.of[0]))
        map_TS[:, [i for i, of in enumerate(source.of[0]) if of == word]] = 0.4
        assert aligned([map_TS], source, target) == ((word, 0),)


def test_ensembles_align_by_their_mean(vocabulary_path: object) -> None:
    from nmt.model.ensemble import Ensemble

    model = random_model(340)
    twice = translator(vocabulary_path, model=Ensemble([model, model]).eval())  # type: ignore[arg-type]
    alone = translator(vocabulary_path, model=model)  # type: ignore[arg-type]
    for one, other in zip(
        twice.stream(LINES, alignment=True, beam=1), alone.stream(LINES, alignment=True, beam=1), strict=True
    ):
        assert one.best.alignment == other.best.alignment
