"""Where the right translation is known: unknown words, alignments, tags, placeholders, numbers, long lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search.copying import copier
from search.models import learn_vocabulary, sentences

from nmt.search.control.protect import Protector
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.subwords.learn import learn
from nmt.subwords.vocabulary import Vocabulary

LINES = [line for line in sentences(50, 10, seed=15)]


@pytest.fixture(scope="module")
def copy(vocabulary_path: Path) -> Translator:
    return copier(Vocabulary.load(vocabulary_path))


@pytest.fixture(scope="module")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Backwards, word by word: every word is one piece."""
    return copier(Vocabulary.load(learn_vocabulary(tmp_path_factory.mktemp("reverse"), 460)), backwards=True)


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A copier without bytes, to which letters outside the made-up words are unknown."""
    folder = tmp_path_factory.mktemp("lacking")
    (folder / "text").write_text("\n".join(sentences(300)) + "\n")
    how = {"kind": "bpe", "split_digits": True, "character_coverage": 1.0, "sentences": 1000, "seed": 1}
    for _ in learn([folder / "text"], folder / "words.model", size=80, byte_fallback=False, **how):
        pass
    return copier(Vocabulary.load(folder / "words.model"))


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    "line", ["bal Zyxqv dem", "Zyxqv", "bal Zyxqv", "Xü Yö Zä", "bal Xü kor Xü", "bäl kör", "Zyxqv " * 40 + "bal"]
)
def test_unknown_words_are_the_source_s_own(lacking: Translator, line: str, beam: int) -> None:
    line = line.strip()
    (found,) = lacking.stream([line], beam=beam, replace_unk=True)
    assert found.text == line
    (default,) = lacking.stream([line], beam=beam)
    assert "\u2047" not in default.text and "<unk>" not in default.best.tokens


def test_lines_that_ask_for_it_have_it_beside_others(lacking: Translator) -> None:
    lines = ["bal Zyxqv", "dem", "Xü"]
    mixed = [Request(line, settings={"replace_unk": i != 2}) for i, line in enumerate(lines)]
    assert lacking.translate(mixed) == ["bal Zyxqv", "dem", lacking.translate(["Xü"])[0]]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("backwards", [False, True])
def test_alignments_are_the_diagonal_and_the_other_one(
    copy: Translator, reverse: Translator, beam: int, backwards: bool
) -> None:
    model = reverse if backwards else copy
    found = list(model.stream(["", *LINES], beam=beam, n_best=1, alignment=True, batch_lines=8))
    assert found[0].best.alignment in {None, ()}
    for line, one in zip(LINES, found[1:], strict=True):
        words = line.split()
        count = len(words)
        assert one.text.split() == (words[::-1] if backwards else words)
        expected = {(count - 1 - j if backwards else j, j) for j in range(count)}
        assert set(one.best.alignment or ()) == expected


@settings(max_examples=30)
@given(words=st.lists(st.sampled_from(["bal", "kor", "dem", "gom", "ban"]), min_size=3, max_size=7), data=st.data())
def test_tags_go_with_their_words(copy: Translator, reverse: Translator, words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    tagged = [*words[:start], f"<b>{' '.join(words[start:end])}</b>", *words[end:]]
    line = Request(" ".join(tagged), markup=True)
    assert copy.translate([line]) == [line.source]
    backwards = [*words[end:][::-1], f"<b>{' '.join(words[start:end][::-1])}</b>", *words[:start][::-1]]
    assert reverse.translate([line]) == [" ".join(backwards)]


@pytest.mark.parametrize(
    "line",
    ["bal {0} kor %s dem", "__VAR_12__ gom", "Ref7b ban %1$d", "471,11 € bal", "XX0555666777", "3.300.221 kor",
     "1000222033304444055555066666607", "see https://a.b/c?d=1&e=2, a@b.cd"],
)  # fmt: skip
def test_what_must_be_copied_is_and_asking_for_it_changes_nothing(copy: Translator, line: str) -> None:
    protector = Protector(("url", "email", "placeholder", "number"), ["Ref[0-9a-f]+"])
    (free,) = copy.stream([line])
    (found,) = copy.stream([Request(line, protector=protector)])
    assert free.text == found.text == line
    assert found.cautions == ()


def test_a_line_of_thousands_of_words_is_translated_whole(copy: Translator) -> None:
    lines = ["bal kor", "dem " * 5000, "gom"]
    found = list(copy.stream(lines))
    assert [found[0].text, found[2].text] == ["bal kor", "gom"]
    assert found[1].text.split() == ["dem"] * 5000
    assert "5,000 tokens, limit 64" in found[1].cautions[0] or "split into" in found[1].cautions[0]
