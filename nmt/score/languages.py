"""Which of sacrebleu's tokenizers fits a target language."""

from __future__ import annotations

import re

UNSPACED = {"zh": "zh", "ja": "ja-mecab"}
"""Languages written without spaces that have a tokenizer of their own."""

_NAMES = {"zho": "zh", "chi": "zh", "cmn": "zh", "yue": "zh", "wuu": "zh", "jpn": "ja", "kor": "ko"}
_OTHER_UNSPACED = {"th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"}
_ANY_LANGUAGE = {"char", "spm", "flores101", "flores200", "spBLEU-1K"}
_OWN = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


_CODES = {
    **{"chinese": "zh", "mandarin": "zh", "cn": "zh", "japanese": "ja", "jp": "ja", "korean": "ko", "german": "de"},
    **{"english": "en", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt", "dutch": "nl"},
    **{"russian": "ru", "ukrainian": "uk", "polish": "pl", "czech": "cs", "romanian": "ro", "turkish": "tr"},
    **{"arabic": "ar", "hebrew": "he", "hindi": "hi", "thai": "th", "lao": "lo", "khmer": "km", "burmese": "my"},
    **{"vietnamese": "vi", "indonesian": "id", "swedish": "sv", "danish": "da", "finnish": "fi", "greek": "el"},
}
"""What is no code of a language, and the code that is meant."""


def language_problem(language: str) -> str:
    """Why `language` is no code as scores need one, for the user; empty where it is one, or nothing is given."""
    first = re.split(r"[-_.@]", language.strip().lower())[0]
    if code := _CODES.get(first):
        return f"{language!r} is no language code; write {code}"
    if language and not re.fullmatch("[a-z]{2,3}", first):
        return f"{language!r} is no language code; one has two or three letters, such as de, zh, ja, ko or pt-BR"
    return ""


def base(language: str) -> str:
    """The two-letter code where there is one: zh-TW, zh_Hant, cmn and zho are all zh."""
    first = re.split(r"[-_.@]", language.strip().lower())[0]
    return _NAMES.get(first, first)


def tokenizer_for(language: str) -> str:
    """sacrebleu's tokenizer for text in `language`: its own for zh, ja and ko, mteval's 13a otherwise."""
    return _OWN.get(base(language), "13a")


def tokenizer_warning(language: str, tokenize: str | None) -> str:
    """A sentence for the user when the tokenizer does not fit `language`; empty when it does or nothing is known."""
    code, used = base(language), tokenize or tokenizer_for(language)
    if not code or used in _ANY_LANGUAGE:
        return ""
    if code in _OTHER_UNSPACED:
        return f"tokenizer {used} splits at spaces, which {language} does not put between words; use char or flores200"
    fitting = _OWN.get(code)
    if used in _OWN.values() and used != fitting:
        return f"tokenizer {used} is not made for {language}; use {tokenizer_for(language)}"
    if code in UNSPACED and used != fitting:
        return f"tokenizer {used} does not split {language} into words, so BLEU is close to 0; use {fitting}"
    return ""


def guess_unspaced(lines: list[str]) -> str:
    """`ja` or `zh` when most letters of `lines` are kana or Han characters, otherwise an empty string."""
    text = "".join(lines[:200])
    letters = sum(character.isalpha() for character in text)
    kana = len(re.findall(r"[\u3040-\u30ff\uff66-\uff9f]", text))
    han = len(re.findall(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]", text))
    if not letters or (kana + han) * 2 < letters:
        return ""
    return "ja" if kana * 10 > letters else "zh"
