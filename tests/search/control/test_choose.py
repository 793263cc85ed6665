"""Coverage, lists without a text twice, unknown words carried over: what is chosen, and what stays as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import random_model, sentences, translator

from nmt.batches.batch import collate
from nmt.corpus.clean import Cleaner
from nmt.search.align import attention_BTS
from nmt.search.control.coverage import coverage
from nmt.search.control.request import Request
from nmt.search.control.unknown import carried_over
from nmt.search.hypothesis import Hypothesis
from nmt.search.translate import Translator
from nmt.search.translation import Translation
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary

LINES = sentences(12, 8, seed=61)


def rows(found: Sequence[Translation]) -> list[list[tuple[str, tuple[str, ...], float]]]:
    return [[(c.text, c.tokens, pytest.approx(c.score, abs=1e-4)) for c in t.alternatives] for t in found]


# ---- coverage


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_coverage_is_the_paper_s_sum(map_TS: list[list[float]]) -> None:
    columns = [min(max(sum(row[i] for row in map_TS), 1e-6), 1) for i in range(3)]
    assert coverage(torch.tensor(map_TS)) == pytest.approx(sum(map(math.log, columns)), abs=1e-4)


def test_the_beam_is_ranked_by_score_and_coverage(random_translator: Translator) -> None:
    weight, changed = 0.7, 0
    t = random_translator
    for line, found in zip(LINES, t.stream(LINES, n_best=4, coverage_penalty=weight), strict=True):
        ids = t.source_vocabulary.encode(line)
        plain = next(t.stream([line], n_best=4))
        expected = {}
        for candidate in plain.alternatives:
            written = [next(i for i in range(len(t.target_vocabulary)) if t.target_vocabulary.piece(i) == piece)
                       for piece in candidate.tokens]  # fmt: skip
            batch = collate([ids], [written], bos=2, eos=3, pad=0)
            with torch.inference_mode():
                looked = attention_BTS(t.model, batch)[0, : len(written), : len(ids)]
            expected[candidate.tokens] = candidate.score + weight * coverage(looked)
        assert {c.tokens: pytest.approx(c.score, abs=1e-4) for c in found.alternatives} == expected
        assert [c.score for c in found.alternatives] == sorted((c.score for c in found.alternatives), reverse=True)
        changed += found.best.tokens != plain.best.tokens
        assert next(t.stream([line], n_best=1, coverage_penalty=weight)).best.tokens == found.best.tokens
    assert changed


def test_lines_have_their_own_weight_and_zero_changes_nothing(random_translator: Translator) -> None:
    free = list(random_translator.stream(LINES, n_best=2))
    assert list(random_translator.stream(LINES, n_best=2, coverage_penalty=0.0)) == free
    covered = list(random_translator.stream(LINES, n_best=2, coverage_penalty=0.7))
    mixed = [Request(line, settings={"coverage_penalty": 0.7 * (i % 2)}) for i, line in enumerate(LINES)]
    found = rows(list(random_translator.stream(mixed, n_best=2)))
    assert found == [rows(covered if i % 2 else free)[i] for i in range(len(LINES))]


def test_a_split_line_counts_the_coverage_of_its_parts(vocabulary_path: Path) -> None:
    short = translator(vocabulary_path, limit=8)
    (plain,), (covered,) = (list(short.stream([" ".join(LINES)], n_best=1, beam=1, coverage_penalty=w)) for w in (0, 1))
    assert covered.text == plain.text
    assert covered.score < plain.score


# ---- no text twice


class Halving(Cleaner):
    """Shows the first half of each text, so that many are equal."""

    def restore(self, text: str) -> str:
        return text[: len(text) // 2]


def test_texts_differ_and_the_best_stays_the_best(random_translator: Translator) -> None:
    t = random_translator
    halving = Translator(
        t.model, t.source_vocabulary, t.target_vocabulary, Cleaner("en"), Halving("de"), max_source_tokens=64
    )
    plain = list(halving.stream(LINES, n_best=4))
    assert any(len({c.text for c in t.alternatives}) < 4 for t in plain)
    found = list(halving.stream(LINES, n_best=4, unique_text=True))
    kept = 0
    for one, other in zip(found, plain, strict=True):
        assert len({c.text for c in one.alternatives}) == len(one.alternatives) == 4
        kept += one.best.tokens == other.best.tokens
        assert [c.score for c in one.alternatives] == sorted((c.score for c in one.alternatives), reverse=True)
        best_of = {c.text: c.tokens for c in reversed(other.alternatives)}
        assert all(best_of.get(c.text, c.tokens) == c.tokens for c in one.alternatives)
    assert kept > len(LINES) // 2  # wider beams find better ones only with such a model
    assert rows(list(halving.stream(LINES, n_best=1, unique_text=True))) == [row[:1] for row in rows(plain)]
    drawn = list(halving.stream(LINES, n_best=4, unique_text=True, sample=True))
    assert all(len({c.text for c in t.alternatives}) == 4 for t in drawn)


def test_a_list_without_doubles_is_as_without_the_option(random_translator: Translator) -> None:
    plain = rows(list(random_translator.stream(LINES, n_best=4)))
    single = [i for i, row in enumerate(plain) if len({text for text, *_ in row}) == 4]
    assert 3 < len(single) < len(LINES)
    mixed = [Request(line, settings={"unique_text": i % 4 < 3}) for i, line in enumerate(LINES)]
    found = rows(list(random_translator.stream(mixed, n_best=4)))
    assert all(found[i] == plain[i] for i in {*single, *range(3, len(LINES), 4)})


# ---- unknown words


@pytest.fixture(scope="module")
def words_only(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """A vocabulary without bytes."""
    folder = tmp_path_factory.mktemp("unknown")
    (folder / "text").write_text("\n".join(sentences(300)) + "\n")
    settings = {"kind": "bpe", "split_digits": True, "character_coverage": 1.0, "sentences": 1000, "seed": 1}
    for _ in learn([folder / "text"], folder / "words.model", size=80, byte_fallback=False, **settings):
        pass
    return Vocabulary.load(folder / "words.model")


@pytest.mark.parametrize(
    ("source", "target", "looks", "text"),
    [
        ("bal Zyxqv dem", "bal Zyxqv dem", [0, 1, 2, 3], "bal Zyxqv dem"),
        ("Zyxqv", "Zyxqv", [0, 1], "Zyxqv"),
        ("Xü bal Yö", "bal Yö", [2, 3, 4], "bal Yö"),
        ("Xü bal Yö", "Yö Xü", [3, 4, 0, 1], "Yö Xü"),
        ("Xü bal Yö", "Yö Xü", [0, 1, 0, 1], "Xü Yö"),  # what one has taken is not given twice
        ("bal dem", "Xü dem", [0, 0, 1], "bal dem"),
    ],
)
def test_unknown_tokens_take_the_source_s_words(
    words_only: Vocabulary, source: str, target: str, looks: list[int], text: str
) -> None:
    ids, surfaces = words_only.encode(target), words_only.pieces(source)
    unknown = [i == words_only.unk for i in words_only.encode(source)]
    map_TS = torch.zeros(len(ids), len(surfaces))
    map_TS[range(len(ids)), looks] = 1
    found = carried_over(Hypothesis(tuple(ids), 0.0, 0.0, (), True), map_TS, surfaces, unknown, words_only)
    assert found.pieces is not None
    assert words_only.decode_pieces(found.pieces) == text


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["bal", "kor", "Zyxqv", "Ünï", "b\u00e4l", "漢字"]), min_size=1, max_size=5))
def test_no_unknown_is_left_where_they_may_be_replaced(words_only: Vocabulary, words: list[str]) -> None:
    model = random_model(len(words_only), seed=3)
    own = Translator(model, words_only, words_only, Cleaner("en"), Cleaner("de"), max_source_tokens=64)
    (found,) = own.stream([" ".join(words)], n_best=3, replace_unk=True, max_length=9)
    for candidate in found.alternatives:
        assert "\u2047" not in candidate.text
        assert "<unk>" not in candidate.text
    (default,) = own.stream([" ".join(words)], n_best=3, max_length=9)
    assert all("<unk>" not in c.tokens for c in default.alternatives)


def test_replacing_changes_nothing_where_nothing_is_unknown(random_translator: Translator) -> None:
    plain = rows(list(random_translator.stream(LINES, n_best=2)))
    found = rows(list(random_translator.stream(LINES, n_best=2, replace_unk=True)))
    same = [one == other for one, other in zip(found, plain, strict=True)]
    assert sum(same) > len(LINES) // 2
