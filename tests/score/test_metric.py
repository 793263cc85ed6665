"""Scores are sacrebleu's own, value and signature; counts and references are checked first."""

from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.schema import Config
from nmt.score.config import BleuConfig, ChrfConfig, MetricConfig, TerConfig
from nmt.score.metric import Score, missing_references, open_references, score_all

BLEU = BleuConfig()
HYPOTHESES = ["The ship sails at dawn.", "It snowed all night."]
FIRST = ["The ship departs at dawn.", "It was snowing all night."]
SECOND = ["At dawn the ship sails.", "It snowed all night long."]

words = st.text(alphabet="abcde .,", max_size=30)
pairs = st.lists(st.tuples(words, words.filter(str.strip)), min_size=1, max_size=6)


def one(hypotheses: list[str], references: list[list[str]], metric: MetricConfig = BLEU, language: str = "en") -> Score:
    return score_all(hypotheses, references, [metric], language)[0]


@settings(max_examples=60)
@given(pairs)
def test_values_are_those_of_sacrebleu(lines: list[tuple[str, str]]) -> None:
    hypotheses, references = [h for h, _ in lines], [[r for _, r in lines]]
    assert one(hypotheses, references).value == sacrebleu.corpus_bleu(hypotheses, references).score
    assert one(hypotheses, references, ChrfConfig()).value == sacrebleu.corpus_chrf(hypotheses, references).score
    assert one(hypotheses, references, TerConfig()).value == sacrebleu.corpus_ter(hypotheses, references).score


@settings(max_examples=60)
@given(pairs)
def test_a_text_scored_against_itself_is_perfect(lines: list[tuple[str, str]]) -> None:
    text = [f"{r} one two three four" for _, r in lines]
    assert one(text, [text]).value == pytest.approx(100)
    assert one(text, [text], TerConfig()).value == 0


@pytest.mark.parametrize(
    "metric", [BLEU, BleuConfig(lowercase=True, tokenize="char"), ChrfConfig(word_order=2), TerConfig()]
)
def test_the_signature_is_the_one_sacrebleu_prints(metric: Config) -> None:
    score = one(HYPOTHESES, [FIRST], metric)  # type: ignore[arg-type]
    built = metric.build("en")  # type: ignore[attr-defined]
    built.corpus.corpus_score(HYPOTHESES, [FIRST])
    assert score.signature == str(built.corpus.get_signature())
    assert f"version:{sacrebleu.__version__}" in score.signature


def test_names_say_which_variant_of_chrf_it_is() -> None:
    assert one(HYPOTHESES, [FIRST], ChrfConfig()).name == "chrF2"
    assert one(HYPOTHESES, [FIRST], ChrfConfig(word_order=2)).name == "chrF2++"


def test_chinese_is_split_by_its_own_tokenizer() -> None:
    hypotheses = ["我昨天买了一本新书。", "他们明天去北京开会。"]
    references = [["我昨天买了一本书。", "他们明天去上海开会。"]]
    score = one(hypotheses, references, language="zh-CN")
    assert score.value == pytest.approx(62.0239, abs=1e-4)
    assert "tok:zh" in score.signature
    assert one(hypotheses, references, BleuConfig(tokenize="13a"), "zh").value == 0


def test_ter_of_chinese_counts_characters_and_says_so() -> None:
    score = one(["我昨天买了书。"], [["我今天买了书。"]], TerConfig(), "zh")
    assert score.value == pytest.approx(100 / 7)  # one of seven characters, the full stop included
    assert "asian:yes" in score.signature


def test_case_counts_unless_lower_case_is_asked_for() -> None:
    hypotheses = ["the ferry leaves at noon.", "it rained all day."]
    references = [["The ferry leaves at noon.", "It rained all day."]]
    mixed, lower = one(hypotheses, references), one(hypotheses, references, BleuConfig(lowercase=True))
    assert mixed.value < 80 and "case:mixed" in mixed.signature
    assert lower.value == pytest.approx(100) and "case:lc" in lower.signature


def test_the_order_of_reference_sets_does_not_matter() -> None:
    both, swapped = one(HYPOTHESES, [FIRST, SECOND]), one(HYPOTHESES, [SECOND, FIRST])
    assert both == swapped
    assert "nrefs:2" in both.signature
    assert both.value > one(HYPOTHESES, [FIRST]).value


@pytest.mark.parametrize("order", [1, -1])
def test_a_blank_line_in_one_of_several_references_is_no_reference(order: int) -> None:
    sets = [FIRST, [SECOND[0], " \u200b"]][::order]
    score = one(HYPOTHESES, sets)
    assert "nrefs:var" in score.signature
    assert score.value == sacrebleu.corpus_bleu(HYPOTHESES, [FIRST, [SECOND[0], None]]).score  # type: ignore[list-item]
    assert missing_references(sets) == 1


def test_a_sentence_with_only_blank_references_still_counts() -> None:
    assert open_references([["", "a"], [" ", "b"]]) == [["", "a"], [None, "b"]]
    assert one(["x y z w", HYPOTHESES[0]], [["", HYPOTHESES[0]]]).value < 100


@pytest.mark.parametrize("metric", [BLEU, ChrfConfig(), ChrfConfig(word_order=2)])
def test_empty_translations_score_zero(metric: MetricConfig) -> None:
    assert one(["", ""], [["Hello there.", "Bye."]], metric).value == 0


def test_single_sentences_are_scored_with_effective_order() -> None:
    metric = BLEU.build("en")
    values = [metric.sentence("", ["Hello"]), metric.sentence("yes", ["no"]), metric.sentence("Go now", ["Go now"])]
    assert values == pytest.approx([0, 0, 100])
    assert metric.sentence("Go now", ["", "Go now"]) == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        (["a", "b"], [["a"]]),
        (["a"], [["a", "b"]]),
        (["a", "b"], [["a", "b"], ["a", "b", "c"]]),
        (["a", "b"], [["a"], ["b"]]),
    ],
)
def test_unequal_counts_are_an_error_with_both_counts(hypotheses: list[str], references: list[list[str]]) -> None:
    with pytest.raises(DataError) as caught:
        one(hypotheses, references)
    counts = {len(hypotheses), *(len(lines) for lines in references)}
    assert sum(str(count) in caught.value.problem for count in counts) >= 2


@pytest.mark.parametrize("references", [["a", "b"], []])
def test_a_list_of_strings_is_not_taken_for_reference_sets(references: list[str]) -> None:
    with pytest.raises(DataError, match="reference sets"):
        score_all(["a", "b"], references, [BLEU], "en")


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(DataError, match="0 lines"):
        one([], [[]])


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_tokenizer_that_is_not_installed_is_an_error_with_the_command(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = __import__(f"sacrebleu.tokenizers.tokenizer_{language}_mecab", fromlist=["MeCab"])
    monkeypatch.setattr(module, "MeCab", None)
    with pytest.raises(DataError) as caught:
        one(["a"], [["a"]], language=language)
    assert f"sacrebleu[{language}]" in caught.value.hint


def test_a_tokenizer_whose_model_would_have_to_be_downloaded_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.score.bleu.SACREBLEU_DIR", "/nonexistent")
    with pytest.raises(DataError, match="needs its model at /nonexistent"):
        one(["a"], [["a"]], BleuConfig(tokenize="flores200"))
