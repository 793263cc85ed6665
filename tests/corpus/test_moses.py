"""Moses mode gives what the Moses scripts give; the expected lines here are theirs."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.moses import Moses


@pytest.mark.parametrize(
    ("language", "raw", "tokens"),
    [
        ("en", "Use a|b, c&d and [x] now.", "Use a &#124; b , c &amp; d and &#91; x &#93; now ."),
        ("en", "Bal isn't kor's well-known dem...", "Bal isn &apos;t kor &apos;s well @-@ known dem ..."),
        ("en", "Costs 5,300 kor, says Dr. Bal.", "Costs 5,300 kor , says Dr. Bal ."),
        ("en", "See kordem.example.", "See kordem.example ."),
        ("en", "He said, “Wait!” and sat.", "He said , “ Wait ! ” and sat ."),
        ("fr", "L'hiver nous tient loin d'ici.", "L&apos; hiver nous tient loin d&apos; ici ."),
        ("it", "L'olio dell'orto", "L&apos; olio dell&apos; orto"),
        ("de", "„Komm!“, rief er am 5. Mai.", "„ Komm ! “ , rief er am 5. Mai ."),
        ("ru", "Бал и т. д.", "Бал и т. д ."),
        ("fi", "EU:n sana: kaksi.", "EU:n sana : kaksi ."),
        ("zh", "他用Python 3写了代码。", "他用Python 3写了代码 。"),
        ("xx", "bal'kor", "bal &apos; kor"),
    ],
)
def test_tokens(language: str, raw: str, tokens: str) -> None:
    assert Moses(language, punctuation=False).clean(raw) == tokens


@pytest.mark.parametrize(
    ("language", "tokens", "text"),
    [
        ("en", "Mount Fuji is 富 士 山 in Japanese .", "Mount Fuji is 富士山 in Japanese."),
        ("zh", "2024 年 5 月 , 他 用 Python 3 写 了 代码 。", "2024 年 5 月, 他用 Python 3 写了代码。"),
        ("ja", "私 は Tokyo に 住ん で い ます 。", "私は Tokyo に住んでいます。"),
        ("ko", "나는 학교에 간다 .", "나는 학교에 간다."),
        ("en", "x = a &#91; i &#93; &#124; b &amp; c", "x = a [i] | b & c"),
        ("en", "“ Here , ” he added .", "“Here, ” he added."),
        ("en", "today ’ s lesson", "today ’ s lesson"),
        ("en", "the Jones &apos; house isn &apos;t", "the Jones' house isn't"),
        ("en", "&quot; Bal &quot; and &quot; kor &quot;", '"Bal" and "kor"'),
        ("en", "$ 5 ( five )", "$5 (five)"),
        ("fr", "C&apos; est l&apos; été , n&apos; est @-@ ce pas ?", "C'est l'été, n'est-ce pas ?"),
        ("cs", "3 , 5 „ bal “ kor", "3,5 „bal“ kor"),
        ("cs", "chce - li bal e - mail dem", "chce-li bal e-mail dem"),
        ("cs", "bal na 832 .", "bal na 832."),
    ],
)
def test_detokenised_text(language: str, tokens: str, text: str) -> None:
    assert Moses(language).restore(tokens) == text


@pytest.mark.parametrize(
    ("language", "raw", "plain"),
    [
        ("de", "„Bal ist kor.“", '"Bal ist kor".'),
        ("en", "“Bal,” he said — “kor…”", '"Bal," he said - "kor..."'),
        ("en", "‘Bal’ isn’t kor’s", "'Bal\" isn't kor's"),
        ("fr", "«\u00a0Bal\u00a0»", '"Bal"'),
        ("ru", "«Бал», — кор —", '"Бал", - кор - '),
        ("cs", "bal (kor)", "bal (kor) "),
    ],
)
def test_punctuation(language: str, raw: str, plain: str) -> None:
    assert Moses(language).normalize(raw) == plain


@pytest.mark.parametrize(
    ("language", "line"), [("fr", "L'hiver nous tient loin d'ici, n'est-ce pas ?"), ("it", "L'olio dell'orto")]
)
def test_elisions_come_back(language: str, line: str) -> None:
    moses = Moses(language)
    assert moses.restore(moses.clean(line)) == line


@pytest.mark.parametrize("text", ["&lt;", "&amp;", "&amp;lt;", "&quot;bal", "a &#124; b", "&bar;", "&amp;amp;amp;"])
def test_an_escape_in_the_text_is_neither_lost_nor_undone(text: str) -> None:
    moses = Moses("en")
    assert moses.restore(moses.clean(text)).replace(" ", "") == text.replace(" ", "")


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab|&<>'\"[]#; .,-0124amplt\u00e9\u200d日")))
def test_no_escape_leaks_and_no_letter_is_lost(text: str) -> None:
    moses = Moses("en", punctuation=False)
    back = moses.restore(moses.clean(text))
    assert back.replace(" ", "") == text.replace(" ", "")


def test_without_tokens_no_escapes_are_made_or_undone() -> None:
    moses = Moses("en", tokenize=False)
    assert moses.clean("a&amp;b “c”") == 'a&amp;b "c"'
    assert moses.restore("a&amp;b") == "a&amp;b"


def test_a_region_does_not_change_the_language() -> None:
    assert Moses("fr-CA").clean("l'été") == Moses("fr_FR").clean("l'été") == Moses("fr").clean("l'été") == "l&apos; été"


def test_letters_with_joiners_and_vowel_killers_stay_words() -> None:
    assert Moses("hi").clean("क्या हिन्दी") == "क्या हिन्दी"


def test_it_can_be_sent_to_another_process() -> None:
    moses = pickle.loads(pickle.dumps(Moses("fr", punctuation=False)))
    assert moses.clean("l'été, “là”") == "l&apos; été , “ là ”"
