"""True case: learned inside sentences, applied everywhere, capitals put back at the starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.corpus.moses import Moses
from nmt.corpus.truecase import Truecaser, capitalize
from nmt.errors import ModelError

TEXT = [
    "The bal met the Kor in the dem .",
    "Kor said : The kor is a Kor .",
    "&quot; Some Bal is the bal of THE bal",
]


def test_sentence_starts_take_the_form_seen_inside_sentences() -> None:
    truecaser = Truecaser.learn(TEXT)
    assert truecaser.apply("The bal .") == "the bal ."
    assert truecaser.apply("kor ! Bal &quot; The") == "Kor ! bal &quot; the"
    assert truecaser.apply("&quot; The bal") == "&quot; the bal"


def test_forms_seen_in_training_stay_inside_sentences_and_others_do_not() -> None:
    truecaser = Truecaser.learn(TEXT)
    assert truecaser.apply("a Bal and THE KOR") == "a Bal and THE Kor"


def test_unknown_words_and_spaces_stay() -> None:
    assert Truecaser.learn(TEXT).apply("Gom  belonged  ") == "Gom  belonged  "


def test_a_model_is_a_text_file_in_the_moses_format_that_comes_back(tmp_path: Path) -> None:
    truecaser = Truecaser.learn(TEXT)
    truecaser.save(tmp_path / "truecase.source")
    lines = (tmp_path / "truecase.source").read_text().splitlines()
    assert "the (3/4) THE (1)" in lines
    assert "bal (3/4) Bal (1)" in lines
    again = Truecaser.load(tmp_path / "truecase.source")
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "truecase.source").read_bytes()
    assert again.apply("The KOR") == "the Kor"


def test_a_damaged_or_missing_model_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("the (3/4)\nno model\n")
    with pytest.raises(ModelError, match="bad:2: is damaged"):
        Truecaser.load(tmp_path / "bad")
    with pytest.raises(ModelError, match="does not exist"):
        Truecaser.load(tmp_path / "missing")


def test_capitals_return_at_the_starts_of_sentences() -> None:
    assert capitalize("the bal . &quot; kor ? éa b") == "The bal . &quot; Kor ? Éa b"


def test_moses_mode_applies_and_undoes_it(tmp_path: Path) -> None:
    Truecaser.learn(TEXT).save(tmp_path / "model")
    moses = Moses("en", truecase_model=tmp_path / "model")
    assert moses.clean("The bal, “Kor” dem.") == "the bal , &quot; Kor &quot; dem ."
    assert moses.restore("the bal , &quot; Kor &quot; dem .") == 'The bal, "Kor" dem.'
