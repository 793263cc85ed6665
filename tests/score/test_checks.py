"""Warnings name what makes a score incomparable, and keep silent about ordinary text."""

from __future__ import annotations

import pytest

from nmt.score.checks import changed_numbers, copied, source_warnings, warnings
from nmt.score.languages import base, guess_unspaced, tokenizer_for, tokenizer_warning


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("The un@@ usual thing", "@@"),
        ("cut off at the end@@", "@@"),
        ("▁The ▁thing", "▁"),
        ("an <unk> appears", "<unk>"),
        ("ends </s>", "</s>"),
        ("a well @-@ known thing", "@-@"),
        ("it &apos;s here", "&apos;"),
        ("left &#91; right", "&apos;"),
    ],
)
def test_one_leftover_is_named_with_its_count(line: str, mark: str) -> None:
    found = warnings(["An ordinary line.", line, "Another one."], "out.txt")
    assert len(found) == 1
    assert mark in found[0] and "out.txt" in found[0] and "1 line of 3" in found[0]


@pytest.mark.parametrize("line", ["He said so .", "他来了 。"])
def test_spaced_full_stops_are_named_when_they_are_common(line: str) -> None:
    assert any("tokenised" in text for text in warnings([line, "Short"]))
    assert not any("tokenised" in text for text in warnings([line, *["An ordinary line."] * 40]))


@pytest.mark.parametrize(
    "line",
    [
        "An ordinary line.",
        "Bonjour !",
        "Vraiment ?",
        "mail@example.org",
        "a@@b.c",
        "AT&T",
        "x < y > z",
        "…",
        "",
        "C'est « ça »",
    ],
)
def test_ordinary_text_raises_no_warning(line: str) -> None:
    assert warnings([line]) == []


def test_copied_lines_and_changed_numbers_are_found_by_line() -> None:
    sources = ["Open the file now", "It costs 1,000.50 euros", "Page 3 of 7", "OK"]
    hypotheses = ["Open the file now", "Es kostet 1.000,50 Euro", "Seite 3 von 8", "OK"]
    assert copied(hypotheses, sources) == [1]
    assert changed_numbers(hypotheses, sources) == [3]
    assert [text.rsplit(": ")[-1] for text in source_warnings(hypotheses, sources)] == ["1", "3"]


def test_long_lists_of_lines_are_cut() -> None:
    assert source_warnings(["1"] * 30, ["2"] * 30)[0].endswith("8, 9, 10 …")


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("de", "13a"), ("zh", "zh"), ("zh-TW", "zh"), ("zh_Hant", "zh"), ("cmn", "zh"), ("ja", "ja-mecab"),
     ("jpn", "ja-mecab"), ("ko", "ko-mecab"), ("ko_KR", "ko-mecab"), ("", "13a"), ("zha", "13a"), ("PT-br", "13a")],
)  # fmt: skip
def test_the_tokenizer_follows_the_language(language: str, tokenizer: str) -> None:
    assert tokenizer_for(language) == tokenizer


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [("zh", "13a"), ("ja", "intl"), ("ja", "zh"), ("de", "zh"), ("ko", "ja-mecab"), ("th", None)],
)
def test_a_tokenizer_that_does_not_fit_is_named(language: str, tokenize: str | None) -> None:
    assert tokenizer_warning(language, tokenize)


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [("zh", None), ("zh", "char"), ("ja", "flores200"), ("ko", "13a"), ("de", "intl"), ("", "13a"), ("", None)],
)
def test_a_tokenizer_that_fits_is_not_remarked_upon(language: str, tokenize: str | None) -> None:
    assert tokenizer_warning(language, tokenize) == ""


def test_chinese_and_japanese_text_is_recognised() -> None:
    assert guess_unspaced(["我昨天买了一本书。"]) == "zh"
    assert guess_unspaced(["昨日、本を買いました。"]) == "ja"
    assert guess_unspaced(["Das Wort 漢字 ist japanisch."]) == ""
    assert guess_unspaced(["나는 어제 책을 샀다."]) == ""
    assert guess_unspaced(["", "123"]) == ""


def test_language_codes_are_reduced_to_their_base() -> None:
    assert [base(code) for code in ("zh-Hans", "pt_BR", "ZHO", " de ")] == ["zh", "pt", "zh", "de"]
