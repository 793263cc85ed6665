"""N-gram models: the file's own definition, probabilities that add up, text that was seen preferred."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.subwords.ngram import NgramModel, estimate
from nmt.subwords.vocabulary import BOS, EOS, UNK

PIECES = ["<pad>", "<unk>", "<s>", "</s>", "▁a", "▁b", "c", "▁d", "#", "\\end\\x"]
TEXT = st.lists(st.lists(st.integers(4, 8), max_size=6), min_size=1, max_size=12)
TINY = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.5
-0.8\t</s>
-0.6\t▁a\t-0.4
-0.9 ▁b -0.2

\\2-grams:
-0.3\t<s> ▁a\t-0.1
-0.2\t▁a ▁b

\\3-grams:
-0.05\t<s> ▁a ▁b

\\end\\
"""


def read(tmp_path: Path, text: str) -> NgramModel:
    (tmp_path / "lm.arpa").write_text(text, encoding="utf-8")
    return NgramModel.read(tmp_path / "lm.arpa", PIECES)


@pytest.mark.parametrize(
    ("context", "word", "log10"),
    [
        ((BOS,), 4, -0.3),  # is there
        ((BOS, 4), 5, -0.05),
        ((BOS,), 5, -0.5 - 0.9),  # backs off once
        ((BOS, 4), EOS, -0.1 - 0.4 - 0.8),  # twice
        ((BOS, 4), UNK, -0.1 - 0.4 - 1.0),
        ((BOS, 4), 7, -0.1 - 0.4 - 1.0),  # no word of the model
        ((BOS, 5, 4), 5, -0.2),  # the longer context is unknown
        ((5, 7), 4, -0.6),
        ((7, 5), 4, -0.2 - 0.6),
        ((), 4, -0.6),
    ],
)
def test_values_are_those_the_file_defines(tmp_path: Path, context: tuple[int, ...], word: int, log10: float) -> None:
    model = read(tmp_path, TINY)
    assert model.order == 3
    assert model.log_probs(context)[word] == pytest.approx(log10 * math.log(10), abs=1e-5)


@settings(max_examples=40)
@given(sentences=TEXT, order=st.integers(1, 4), context=st.lists(st.integers(4, 9), max_size=4), begun=st.booleans())
def test_estimated_probabilities_add_up_to_one(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[int]], order: int, context: list[int], begun: bool
) -> None:
    model = read(tmp_path_factory.mktemp("lm"), "\n".join(estimate(sentences, PIECES, order)))
    log_probs_V = model.log_probs((BOS, *context) if begun else tuple(context))
    assert np.exp(log_probs_V[[UNK, EOS, *range(4, len(PIECES))]]).sum() == pytest.approx(1, abs=1e-4)


def test_it_expects_what_it_has_seen(tmp_path: Path) -> None:
    draw = random.Random(3)
    text = [[4, 5, 6] if draw.random() < 0.7 else [7, 4] for _ in range(200)]
    model = read(tmp_path, "\n".join(estimate(text, PIECES, 3)))
    assert np.exp(model.log_probs((BOS,))[4]) == pytest.approx(sum(t[0] == 4 for t in text) / 200, abs=0.02)
    assert int(model.log_probs((4, 5)).argmax()) == 6
    assert int(model.log_probs((7, 4)).argmax()) == EOS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no ARPA file"),
        ("bal kor\n", "no ARPA file"),
        (TINY.replace("\\end\\", ""), "is cut"),
        (TINY.replace("-0.2\t▁a ▁b", "-0.2\t▁a"), ":15: is no 2-gram"),
        (TINY.replace("-0.05", "x"), "is no 3-gram"),
        (TINY.replace("▁a", "a").replace("▁b", "b").replace("<unk>", "z").replace("</s>", "y"), "no pieces"),
    ],
)
def test_what_is_no_such_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words.replace("(", "\\(")):
        read(tmp_path, text)
