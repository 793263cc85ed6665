"""Text to text: every line in its place, and nothing but model, line and settings in its translation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from held import held
from hypothesis import given, settings
from hypothesis import strategies as st
from model.cases import MODELS, name
from search.models import CONFIG, random_model, sentences, translator

from nmt.corpus.lines import is_blank
from nmt.errors import NmtError
from nmt.model import compiling
from nmt.model.config import TransformerConfig
from nmt.model.ensemble import Ensemble
from nmt.model.inference.transformer import FastTransformer
from nmt.search.control.request import Request
from nmt.search.feed import live
from nmt.search.length import parse_penalty
from nmt.search.rescore import rescored
from nmt.search.translate import Translator
from nmt.search.translation import Candidate, Translation
from nmt.subwords.vocabulary import Vocabulary

BLANKS = ["", " ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", " \u200b \t"]


def same(one: Translation, other: Translation, tolerance: float = 1e-4) -> bool:
    """Whether two translations of a line agree in tokens exactly and in scores closely."""
    tokens = [c.tokens for c in one.alternatives] == [c.tokens for c in other.alternatives]
    pairs = zip(one.alternatives, other.alternatives, strict=True)
    return tokens and all(abs(a.score - b.score) < tolerance for a, b in pairs)


@pytest.fixture(scope="module")
def mixed() -> list[str]:
    return sentences(120, 30, seed=5)


@pytest.fixture(scope="module")
def usual(random_translator: Translator, mixed: list[str]) -> dict[int, list[Translation]]:
    """The translations of `mixed` with beams of these sizes."""
    return {beam: list(random_translator.stream(mixed, beam=beam)) for beam in (1, 4, 5)}


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize(
    "how", [{"batch_tokens": 1}, {"batch_tokens": 200}, {"batch_lines": 3}, {"buffer_lines": 7}, {"buffer_lines": 1}]
)
def test_batches_and_buffers_change_nothing(
    random_translator: Translator,
    mixed: list[str],
    usual: dict[int, list[Translation]],
    beam: int,
    how: dict[str, int],
) -> None:
    expected = usual[beam]
    assert len({t.best.tokens for t in expected}) > 30  # translations that differ: otherwise this proves nothing
    assert {t.best.finished for t in expected} == {True, False}
    other = list(random_translator.stream(mixed, beam=beam, **how))
    assert [t.text for t in other] == [t.text for t in expected]
    assert all(map(same, expected, other))


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_workers_and_batches_change_nothing_in_any_precision(
    random_translator: Translator, mixed: list[str], precision: str, beam: int
) -> None:
    usual = list(random_translator.stream(mixed[:40], beam=beam, precision=precision, workers=1))
    for how in ({"workers": 2}, {"workers": 3, "batch_lines": 5}, {"batch_tokens": 1}):
        assert list(random_translator.stream(mixed[:40], beam=beam, precision=precision, **how)) == usual
    assert len(list(random_translator.stream(mixed[:2], precision="auto"))) == 2


@pytest.mark.parametrize("beam", [1, 4])
def test_order_and_neighbours_change_nothing(
    random_translator: Translator, mixed: list[str], usual: dict[int, list[Translation]], beam: int
) -> None:
    backwards = list(random_translator.stream(mixed[::-1], beam=beam))[::-1]
    among_others = list(random_translator.stream([*mixed[:10], "", *sentences(9, 60, seed=2)], beam=beam))
    assert all(map(same, usual[beam], backwards))
    assert all(map(same, usual[beam][:10], among_others[:10]))


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_batches_change_nothing_whatever_the_model(vocabulary_path: Path, config: Any) -> None:
    ours = translator(vocabulary_path, model=random_model(340, config=config), limit=30)
    lines = sentences(12, 20, seed=8)
    assert all(map(same, ours.stream(lines), ours.stream(lines, batch_tokens=1)))


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_the_forced_score_is_the_score_of_search_whatever_the_model(vocabulary_path: Path, config: Any) -> None:
    ours = translator(vocabulary_path, model=random_model(340, config=config, opinions=2), limit=30)
    pairs = forced(ours, sentences(8, 6, seed=4), "gnmt:0.6")
    assert [scored.score for _, scored in pairs] == pytest.approx([found.score for found, _ in pairs], abs=1e-4)


@pytest.mark.parametrize("config", MODELS, ids=name)
def test_a_beam_of_one_takes_the_likeliest_token_each_time_whatever_the_model(
    vocabulary_path: Path, config: Any
) -> None:
    ours = translator(vocabulary_path, model=random_model(340, config=config), limit=30)
    vocabulary = ours.target_vocabulary
    numbers = {vocabulary.piece(i): i for i in range(len(vocabulary))}
    for translation in ours.stream(sentences(4, 6, seed=4), beam=1):
        ids = [numbers[piece] for piece in translation.best.tokens]
        source = [*ours.source_vocabulary.encode(translation.source), vocabulary.eos]
        src_BS, tgt_BT = torch.tensor([source]), torch.tensor([[vocabulary.bos, *ids]])
        with torch.no_grad():
            logits_BTV = ours.model.decode(ours.model.encode(src_BS, src_BS >= 0), src_BS >= 0, tgt_BT)
        logits_BTV[..., [vocabulary.pad, vocabulary.unk, vocabulary.bos]] = -torch.inf
        chosen = [*ids, vocabulary.eos] if translation.best.finished else ids
        assert logits_BTV[0].argmax(-1).tolist()[: len(chosen)] == chosen


def test_a_model_in_training_translates_without_dropout_and_stays_in_training(vocabulary_path: Path) -> None:
    ours = translator(vocabulary_path)
    lines = sentences(20)
    before = ours.translate(lines)
    ours.model.train()
    try:
        assert ours.translate(lines) == before
        assert ours.model.training
        assert torch.is_grad_enabled()
    finally:
        ours.model.eval()


@settings(max_examples=25)
@given(
    lines=st.lists(st.one_of(st.sampled_from(BLANKS), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))),
    buffer=st.integers(1, 5),
)
def test_any_lines_give_as_many_lines_and_blank_ones_stay_blank(
    random_translator: Translator, lines: list[str], buffer: int
) -> None:
    translations = list(random_translator.stream(lines, buffer_lines=buffer, beam=2))
    assert [t.number for t in translations] == list(range(len(lines)))
    assert [t.source for t in translations] == lines
    for line, translation in zip(lines, translations, strict=True):
        assert len(translation.text.splitlines()) <= 1
        assert "\n" not in translation.text
        if is_blank(line):
            assert (translation.text, translation.score) == ("", 0.0)


def test_blank_lines_never_reach_the_model(vocabulary_path: Path) -> None:
    class Untouchable:
        """Has no weights and answers nothing."""

        training = False

        def to(self, *_: object) -> Untouchable:
            return self

        def modules(self) -> list[object]:
            return []

        eval = train = to

    vocabulary = Vocabulary.load(vocabulary_path)
    ours = translator(vocabulary_path)
    ours.model = Untouchable()  # type: ignore[assignment]
    assert ours.translate(BLANKS) == [""] * len(BLANKS)
    assert len(vocabulary) == 340


def test_no_lines_give_no_lines(random_translator: Translator) -> None:
    assert random_translator.translate([]) == []


def test_nothing_is_held_of_lines_that_are_done(random_translator: Translator) -> None:
    lines, seen = (line for _ in range(12) for line in sentences(4, 8, seed=1)), {}
    for translation in random_translator.stream(lines, buffer_lines=4):
        if translation.number in {8, 44}:
            seen[translation.number] = held()
    assert seen[44][0] <= seen[8][0]
    assert seen[44][1] - seen[8][1] < 18, "not one object for two lines"


def test_long_lines_are_split_named_and_leave_their_neighbours_alone(random_translator: Translator) -> None:
    lines = ["bal kor", "dem " * 1499 + "dem", "gom"]
    one, long, other = random_translator.stream(lines)
    assert [one.text, other.text] == random_translator.translate(["bal kor", "gom"])
    count = len(random_translator.source_vocabulary.encode(lines[1]))
    parts = -(-count // 63)
    assert long.cautions == (f"line 2: {count:,} tokens, limit 64 with the end mark: split into {parts} parts",)
    assert long.best.tokens
    assert not one.cautions
    assert not other.cautions


def test_a_split_line_is_its_parts_rejoined(random_translator: Translator) -> None:
    first, second = "bal kor dem gom ban bar bel.", "kor dem gom! "
    limit = len(random_translator.source_vocabulary.encode(first)) + 1
    (whole,) = random_translator.stream([f"{first} {second}"], max_source_tokens=limit)
    parts = list(random_translator.stream([first, second.strip()]))
    assert whole.text == " ".join(part.text for part in parts)
    assert whole.best.log_probability == pytest.approx(sum(p.best.log_probability for p in parts), abs=1e-4)


@pytest.mark.parametrize(("language", "joiner"), [("de", " "), ("ko", " "), ("zh", ""), ("ja", ""), ("zh-TW", "")])
def test_parts_are_joined_as_the_language_joins_sentences(vocabulary_path: Path, language: str, joiner: str) -> None:
    ours = translator(vocabulary_path, language)
    limit = len(ours.source_vocabulary.encode("bal kor.")) + 1
    (joined,) = ours.translate(["bal kor. dem gom."], max_source_tokens=limit)
    assert joined == joiner.join(ours.translate(["bal kor.", "dem gom."]))


def test_the_limit_counts_the_end_mark(random_translator: Translator) -> None:
    line = "bal kor dem gom"
    tokens = len(random_translator.source_vocabulary.encode(line))
    (fits,) = random_translator.stream([line], max_source_tokens=tokens + 1)
    (split,) = random_translator.stream([line], max_source_tokens=tokens)
    assert not fits.cautions
    assert split.cautions


@pytest.mark.parametrize("extra", [0, 3, 50])
@pytest.mark.parametrize("beam", [1, 4])
def test_no_translation_is_longer_than_its_source_allows(random_translator: Translator, extra: int, beam: int) -> None:
    lines = ["???", "zzzz qqqq", "bal bal bal bal bal bal bal bal", ".", *sentences(20)]
    for translation in random_translator.stream(lines, beam=beam, max_extra_tokens=extra):
        assert len(translation.best.tokens) <= len(translation.source_tokens) + extra
        if not translation.best.finished:
            assert len(translation.best.tokens) == len(translation.source_tokens) + extra


def test_learned_positions_are_never_overrun(vocabulary_path: Path) -> None:
    position = {"kind": "learned", "length": 12}
    config = TransformerConfig.model_validate({**CONFIG.model_dump(), "position": position})
    ours = translator(vocabulary_path, model=random_model(340, config=config))
    long = "bal kor dem gom ban bar bel kar " * 4
    (translation,) = ours.stream([long], max_extra_tokens=50)
    assert translation.cautions[0].startswith("line 1: ")
    (scored,) = ours.rescore([long], [long])
    assert not scored.finished
    assert ours.rescore(["bal"], ["kor"])[0].finished


def test_of_given_pairs_too_long_for_memory_the_beginning_is_scored(random_translator: Translator) -> None:
    ours, pairs = random_translator, [("bal kor dem gom", "kor dem bal"), ("bal", "kor"), ("bal", "kor dem bal gom")]
    settings, penalty = ours._settings({}), parse_penalty("none")
    requests, targets = [Request(one) for one, _ in pairs], [other for _, other in pairs]

    def scored(longest: int) -> list[Candidate]:
        with ours._inference():
            return rescored(ours, requests, [[]] * len(pairs), targets, settings, penalty, longest=longest)

    usual, most = scored(99), max(len(ours.source_vocabulary.encode(one)) for pair in pairs for one in pair)
    assert scored(most) == usual == ours.rescore(requests, targets, length_penalty="none")
    cut = scored(2)
    assert [one.finished for one in cut] == [False, len(usual[1].tokens) <= 2, False]
    assert all(len(one.token_log_probabilities) <= 3 for one in cut)
    begun, (expected, *_) = cut[2].token_log_probabilities[:2], ours.rescore(["bal"], [targets[2]])
    assert begun == pytest.approx(expected.token_log_probabilities[:2], abs=1e-4)


@pytest.mark.parametrize("penalty", ["gnmt:0.6", "average:1", "none", "average:-0.5", "average:-10", "average:10"])
def test_n_best_lists_are_full_distinct_and_sorted(random_translator: Translator, penalty: str) -> None:
    lines = sentences(10, seed=3)
    firsts = random_translator.translate(lines, beam=8, length_penalty=penalty)
    for first, translation in zip(
        firsts, random_translator.stream(lines, beam=8, n_best=8, length_penalty=penalty), strict=True
    ):
        assert translation.text == first
        assert len({c.tokens for c in translation.alternatives}) == 8
        scores = [c.score for c in translation.alternatives]
        assert scores == sorted(scores, reverse=True)


def test_n_best_lists_of_split_lines_are_sorted_and_full(random_translator: Translator) -> None:
    (translation,) = random_translator.stream(["bal kor. dem gom."], n_best=4, beam=4, max_source_tokens=10)
    scores = [c.score for c in translation.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert len({c.tokens for c in translation.alternatives}) == 4


def forced(ours: Translator, lines: list[str], penalty: str) -> list[tuple[Candidate, Candidate]]:
    """Found candidates and their forced scores: those whose text has the very tokens that search chose."""
    found = [
        (t.source, c) for t in ours.stream(lines, n_best=4, beam=4, length_penalty=penalty) for c in t.alternatives
    ]
    pairs = [(source, c) for source, c in found if tuple(ours.target_vocabulary.pieces(c.text)) == c.tokens]
    scored = ours.rescore([source for source, _ in pairs], [c.text for _, c in pairs], length_penalty=penalty)
    return list(zip((c for _, c in pairs), scored, strict=True))


@pytest.mark.parametrize("penalty", ["none", "gnmt:0.6", "average:1"])
def test_the_forced_score_is_the_score_of_search(vocabulary_path: Path, penalty: str) -> None:
    model = random_model(
        340, opinions=2
    )  # with still larger weights, float32 itself is off by more, summed up in any order
    pairs = forced(translator(vocabulary_path, model=model), sentences(50, 20, seed=4), penalty)
    assert len(pairs) > 20
    for found, scored in pairs:
        assert scored.log_probability == pytest.approx(found.log_probability, abs=1e-4)
        assert scored.score == pytest.approx(found.score, abs=1e-4)
        assert scored.token_log_probabilities == pytest.approx(found.token_log_probabilities, abs=1e-4)


def test_rescoring_does_not_depend_on_batches(random_translator: Translator) -> None:
    sources, targets = sentences(60, 20, seed=1), sentences(60, 30, seed=2)
    usual = [c.score for c in random_translator.rescore(sources, targets)]
    for how in ({"batch_tokens": 1}, {"batch_tokens": 99}, {"buffer_lines": 7}):
        assert [c.score for c in random_translator.rescore(sources, targets, **how)] == pytest.approx(usual, abs=1e-4)


def test_blank_lines_are_scored_like_any_but_for_pairs_of_them(random_translator: Translator) -> None:
    blank, empty_target, empty_source = random_translator.rescore([" ", "bal", ""], ["", "", "bal"])
    assert blank.score == 0
    assert empty_target.score < 0
    assert len(empty_target.token_log_probabilities) == 1
    assert empty_source.score < 0


def test_unequal_counts_are_an_error(random_translator: Translator) -> None:
    with pytest.raises(ValueError, match="2 sources, 1 targets"):
        random_translator.rescore(["bal", "kor"], ["bal"])


def test_unfit_settings_are_refused_before_anything_is_read(random_translator: Translator) -> None:
    def unread() -> object:
        raise AssertionError
        yield

    with pytest.raises(NmtError, match="beam = 4"):
        random_translator.stream(unread(), n_best=5)  # type: ignore[arg-type]
    with pytest.raises(NmtError, match="length_penalty"):
        random_translator.stream(unread(), length_penalty="0.6")  # type: ignore[arg-type]
    with pytest.raises(NmtError, match="from -10 to 10"):
        random_translator.stream(unread(), length_penalty="average:999")  # type: ignore[arg-type]
    with pytest.raises(NmtError, match="beams"):
        random_translator.stream(unread(), beams=3)  # type: ignore[arg-type]


def test_lines_that_come_one_by_one_are_answered_one_by_one(random_translator: Translator) -> None:
    """The next question is asked only after the answer: whoever waits for more lines would wait for ever."""
    answers: list[str] = []

    def driver() -> object:
        for number, line in enumerate(["bal", "", "kor dem"]):
            assert len(answers) == number
            yield line
            while len(answers) == number:
                yield None

    for translation in random_translator.stream(driver(), buffer_lines=100):  # type: ignore[arg-type]
        answers.append(translation.text)
    assert answers == random_translator.translate(["bal", "", "kor dem"])


def test_lines_read_by_a_thread_are_translated_alike(random_translator: Translator) -> None:
    lines = sentences(50)
    random.Random(1).shuffle(lines)
    assert random_translator.translate(live(lines)) == random_translator.translate(lines)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 25), ("int8", 20)])
def test_reduced_precision_is_close_and_the_default_exact(
    random_translator: Translator, precision: str, most: int
) -> None:
    lines = sentences(30, seed=6)
    exact, rough = (list(random_translator.stream(lines, precision=p)) for p in ("float32", precision))
    close = [abs(a.best.score - b.best.score) < 0.1 * abs(a.best.score) for a, b in zip(exact, rough, strict=True)]
    assert sum(close) >= most  # the others differ early: a model that has learned nothing hardly prefers one token
    assert any(a.best.score != b.best.score for a, b in zip(exact, rough, strict=True))


def test_a_given_translation_is_scored_alike_in_any_company_whatever_the_precision(
    random_translator: Translator,
) -> None:
    sources, targets = sentences(20, 20, seed=3), sentences(20, 20, seed=4)
    alone = [random_translator.rescore([one], [other])[0].score for one, other in zip(sources, targets, strict=True)]
    for precision in ("float32", "bfloat16", "int8"):
        together = random_translator.rescore(sources, targets, precision=precision)
        assert [one.score for one in together] == pytest.approx(alone, rel=1e-5)


def test_without_numba_the_same_is_translated(random_translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = sentences(12, seed=9)
    expected = random_translator.translate(lines)
    monkeypatch.setattr("nmt.model.compiling.AVAILABLE", False)
    random_translator.solver.engine.made = None
    try:
        assert random_translator.translate(lines) == expected
        assert isinstance(random_translator.solver.engine.made, FastTransformer)
    finally:
        random_translator.solver.engine.made = None


@pytest.mark.skipif(not compiling.AVAILABLE, reason="needs numba")
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_an_ensemble_translates_a_line_alike_in_any_company(
    precision: str, vocabulary_path: Path, mixed: list[str]
) -> None:
    size = len(Vocabulary.load(vocabulary_path))
    models = translator(vocabulary_path, model=Ensemble([random_model(size), random_model(size, 8)]))
    together, apart = (
        [(one.text, one.score) for one in models.stream(mixed[:30], beam=3, precision=precision, batch_lines=lines)]
        for lines in (None, 1)
    )
    assert together == apart and len({text for text, _ in together}) > 3
    assert not any(model.training for model in models.model.modules())
