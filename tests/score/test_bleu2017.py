"""BLEU as the papers of 2017 report it: Moses' tokens, compounds split, multi-bleu's formula."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence

import pytest
from score.systems import references, system

from nmt.corpus.moses import Moses
from nmt.score.bleu2017 import CompoundSplit, split_compounds
from nmt.score.config import Bleu2017Config, BleuConfig

GERMAN = [
    "Der EU-Vertrag (von 2009) ist nicht rechts- oder links-außen-nah.",
    "Er sagte: „Das UN-Büro schließt um 18-20 Uhr“ -- z.B. heute.",
    "A-b-c-d e--f -g h- i - j ü-ö\u00a0-\u00a0x",
]


def multi_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of tokens without smoothing, written down from its definition (Papineni et al. 2002)."""
    matches, totals = [0] * 4, [0] * 4
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, 5):
            own, other = (
                Counter(zip(*(line.split()[i:] for i in range(n)), strict=False)) for line in (hypothesis, reference)
            )
            matches[n - 1] += sum((own & other).values())
            totals[n - 1] += sum(own.values())
    if 0 in matches:
        return 0.0
    written, wanted = (sum(len(line.split()) for line in lines) for lines in (hypotheses, references))
    penalty = min(1.0, math.exp(1 - wanted / written))
    return 100 * penalty * math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)


@pytest.mark.parametrize(
    ("tokens", "split"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a-b-c", "a ##AT##-##AT## b-c"),  # the expression takes no character twice
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("rechts- oder -links - so", "rechts- oder -links - so"),
        ("18-20", "18 ##AT##-##AT## 20"),
        ("", ""),
    ],
)
def test_hyphens_between_characters_become_tokens(tokens: str, split: str) -> None:
    assert split_compounds(tokens) == split


@pytest.mark.skipif(shutil.which("perl") is None, reason="the expression is perl's")
def test_compounds_are_split_as_perl_does() -> None:
    expression = "s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g"
    text = "".join(line + "\n" for line in [*GERMAN, *references()])
    done = subprocess.run(["perl", "-ple", expression], input=text.encode(), capture_output=True, check=True)
    assert [split_compounds(line) for line in text.split("\n")] == done.stdout.decode().split("\n")


def test_text_is_tokenised_without_moses_own_hyphen_splitting() -> None:
    assert CompoundSplit("de")("Der EU-Vertrag z.B. „hier“.") == "Der EU ##AT##-##AT## Vertrag z.B. „ hier “ ."


def test_the_value_is_that_of_the_definition() -> None:
    lines = references()
    hypotheses = system(lines, 0.2, 1)
    moses = Moses("en", punctuation=False)
    ours, theirs = (
        [split_compounds(moses.tokenize(line, split_hyphens=False)) for line in side] for side in (hypotheses, lines)
    )
    score = Bleu2017Config().build("en").score(hypotheses, [lines])
    assert score.value == pytest.approx(multi_bleu(ours, theirs), abs=1e-9)
    assert any("##AT##" in line for line in theirs)


def test_name_and_signature_are_its_own() -> None:
    score = Bleu2017Config().build("de").score(GERMAN, [GERMAN])
    assert score.name == "BLEU-2017(compound-split)"
    assert score.value == pytest.approx(100)
    assert "tok:sacremoses-" in score.signature and "-de+compound-split|smooth:none" in score.signature
    assert BleuConfig().build("de").score(GERMAN, [GERMAN]).signature != score.signature
    assert len(score.details["precisions"]) == 4


def test_case_counts_unless_lower_case_is_asked_for() -> None:
    lower = [line.lower() for line in references()]
    mixed, lowered = (Bleu2017Config(lowercase=low).build("en").score(lower, [references()]) for low in (False, True))
    assert mixed.value < 100 and "case:mixed" in mixed.signature
    assert lowered.value == pytest.approx(100) and "case:lc" in lowered.signature


def test_nothing_is_smoothed() -> None:
    metric = Bleu2017Config().build("en")
    assert metric.score(["one two three"], [["one two three"]]).value == 0  # no n-gram of four
    assert metric.sentence("one two three", ["one two three"]) == pytest.approx(100)
