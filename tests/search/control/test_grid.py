"""Search for translations that hold given phrases, against brute force and in whole translations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.models import WORDS, sentences
from search.tables import BOS, EOS, FIRST, PAD, UNK, start, stepper
from torch import Tensor

from nmt.search.control.glossary import Glossary
from nmt.search.control.grid import Progress, grid_search
from nmt.search.control.phrases import occurrences
from nmt.search.control.protect import Protector
from nmt.search.control.request import Request
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

Logits = Callable[[int, tuple[int, ...]], Tensor]
LINES = sentences(14, 8, seed=31)


def random_table(seed: int, size: int, sharpness: float = 1.5) -> Logits:
    def logits(sentence: int, prefix: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash((seed, sentence, prefix)) % 2**31)
        return torch.randn(size, generator=generator) * sharpness

    return logits


def run(
    logits: Logits, limits: Sequence[int], phrases: Sequence[Sequence[tuple[int, ...]]], width: int, size: int
) -> list[list[Hypothesis]]:
    return grid_search(
        stepper(logits),
        start(len(limits)),
        bos=BOS,
        eos=EOS,
        banned=[PAD, UNK, BOS],
        limits=limits,
        phrases=phrases,
        follow_V=torch.ones(size, dtype=torch.bool),
        width=width,
        n_best=2,
        penalty=parse_penalty("gnmt:0.6"),
    )


def holds(ids: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    return any(ids[i : i + len(phrase)] == phrase for i in range(len(ids)))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    phrase=st.lists(st.integers(FIRST, FIRST + 1), min_size=1, max_size=3).map(tuple),
    limits=st.lists(st.integers(3, 4), min_size=1, max_size=3),
)
def test_a_beam_that_covers_the_space_finds_the_best_that_holds_the_phrase(
    seed: int, phrase: tuple[int, ...], limits: list[int]
) -> None:
    size, penalty = FIRST + 2, parse_penalty("gnmt:0.6")
    logits = random_table(seed, size)
    found = run(logits, limits, [[phrase]] * len(limits), 40, size)
    for sentence, limit in enumerate(limits):
        best = -torch.inf
        for length in range(limit + 1):
            for ids in itertools.product(range(FIRST, size), repeat=length):
                if holds(ids, phrase):
                    gains = [float(logits(sentence, ids[:t]).log_softmax(-1)[x]) for t, x in enumerate((*ids, EOS))]
                    best = max(best, penalty.score(sum(gains), length + 1))
        assert holds(found[sentence][0].ids, phrase)
        assert found[sentence][0].score == pytest.approx(best, abs=1e-4)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    phrases=st.lists(st.lists(st.integers(FIRST, FIRST + 8), min_size=1, max_size=3).map(tuple), max_size=3),
    width=st.integers(1, 6),
)
def test_phrases_are_held_as_often_as_named_however_improbable(
    seed: int, phrases: list[tuple[int, ...]], width: int
) -> None:
    limits = [sum(map(len, phrases)) + 2, 12]
    found = run(random_table(seed, FIRST + 9), limits, [phrases, []], width, FIRST + 9)
    progress = Progress.start(phrases)
    for token in found[0][0].ids:
        progress = progress.after(token)
    assert progress.missing == 0
    for limit, hypotheses in zip(limits, found, strict=True):
        assert all(len(h.ids) <= limit for h in hypotheses)
        assert len({h.ids for h in hypotheses}) == len(hypotheses)


def test_neighbours_do_not_matter() -> None:
    logits, size = random_table(5, FIRST + 6), FIRST + 6
    wanted: list[list[tuple[int, ...]]] = [[(4, 5)], [(6,)], [(7, 7, 8), (4,)]]
    together = run(logits, [9, 5, 8], wanted, 5, size)

    def last(_: int, prefix: tuple[int, ...]) -> Tensor:
        return logits(2, prefix)

    assert run(last, [8], wanted[2:], 5, size) == together[2:]


@pytest.mark.parametrize("beam", [1, 4])
def test_required_phrases_stand_in_every_translation(random_translator: Translator, beam: int) -> None:
    requests = [Request(line, require=tuple(WORDS[i : i + 1 + i % 3] if i % 2 else ())) for i, line in enumerate(LINES)]
    free = list(random_translator.stream(LINES, beam=beam))
    for asked, theirs, ours in zip(requests, free, random_translator.stream(requests, beam=beam), strict=True):
        assert not ours.cautions
        assert all(occurrences(phrase, ours.text) for phrase in asked.require)
        if not asked.require:
            assert ours.best.tokens == theirs.best.tokens
    for asked, many in zip(requests, random_translator.stream(requests, beam=4, n_best=4), strict=True):
        assert len({c.tokens for c in many.alternatives}) == 4
        assert all(occurrences(phrase, c.text) for phrase in asked.require for c in many.alternatives)


def test_what_is_there_already_changes_nothing(random_translator: Translator) -> None:
    free = [t for t in random_translator.stream(LINES) if t.text.split()]
    again = random_translator.stream([Request(t.source, require=(t.text.strip(),)) for t in free])
    assert [t.best.tokens for t in again] == [t.best.tokens for t in free]


def test_glossary_terms_stand_where_their_sources_do(random_translator: Translator) -> None:
    glossary = Glossary([("bal", "Zürich"), ("dem kor", "kor gom"), ("zzz", "never")])
    lines = [*LINES, "bal kor", "dem kor bal", "dem", "balbal"]
    free = random_translator.translate(lines)
    for line, theirs, ours in zip(
        lines, free, random_translator.stream([Request(line, glossary=glossary) for line in lines]), strict=True
    ):
        wanted = glossary.wanted(line)
        assert not ours.cautions
        assert all(occurrences(term, ours.text) for term in wanted)
        assert wanted or ours.text == theirs


def test_protected_spans_come_through_or_are_named(random_translator: Translator) -> None:
    protector = Protector(["url", "email", "placeholder", "number"])
    lines = ["bal {0} kor %s", "dem http://a.b/c?d=1 gom", "{0} {0} {0}", "kor 12 dem 3,5", "a@b.cd", *LINES]
    free = random_translator.translate(lines)
    found = list(random_translator.stream([Request(line, protector=protector) for line in lines]))
    for line, theirs, ours in zip(lines, free, found, strict=True):
        spans = protector.find(line)
        if not ours.cautions:
            assert all(protector.find(ours.text).count(span) == spans.count(span) for span in spans)
        if not spans:
            assert ours.text == theirs
    assert sum(bool(t.cautions) for t in found) <= 1


@pytest.mark.parametrize("beam", [1, 4])
def test_forbidden_phrases_stand_nowhere_or_are_named(random_translator: Translator, beam: int) -> None:
    free = [t for t in random_translator.stream(LINES, beam=beam) if t.text.split()]
    requests = [Request(t.source, forbid=(t.text.split()[-1], t.text.split()[0])) for t in free]
    found = list(random_translator.stream(requests, beam=beam))
    for asked, ours in zip(requests, found, strict=True):
        assert bool(ours.cautions) == any(occurrences(phrase, ours.text) for phrase in asked.forbid)
    assert sum(not t.cautions for t in found) > 0.8 * len(found)
    others = random_translator.translate([Request(t.source, forbid=("zzz",)) for t in free], beam=beam)
    assert others == [t.text for t in free]


def test_lists_of_what_is_forbidden_something_are_full_and_begin_with_the_one_of_one(
    random_translator: Translator,
) -> None:
    lines = sentences(24, 8, seed=3)
    free = random_translator.translate(lines, beam=8)
    words = [["gom", "bal"] if i % 2 else text.split()[:1] for i, text in enumerate(free)]
    requests = [Request(line, forbid=tuple(phrases)) for line, phrases in zip(lines, words, strict=True)]
    alone = list(random_translator.stream(requests, beam=8))
    same, changed = 0, 0
    for asked, one, many in zip(requests, alone, random_translator.stream(requests, beam=8, n_best=8), strict=True):
        found = [c for c in many.alternatives if c.tokens]
        assert len(found) >= 7 and len({c.tokens for c in many.alternatives}) == len(many.alternatives)
        assert bool(many.cautions) == any(occurrences(phrase, c.text) for c in found for phrase in asked.forbid)
        assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
        same += many.text == one.text
        changed += one.text not in free
    assert same >= len(lines) - 1, "better ones come in only where there are too few others"
    assert changed > 3


def test_prefix_phrases_and_limits_hold_together(random_translator: Translator) -> None:
    requests = [Request(line, prefix="bal kor", require=("gom",), forbid=("dem",)) for line in LINES]
    for t in random_translator.stream(requests, no_repeat_ngram=3, n_best=2):
        assert not t.cautions
        assert all(c.text.startswith("bal kor") and occurrences("gom", c.text) for c in t.alternatives)


def test_samples_that_lack_a_phrase_are_named(random_translator: Translator) -> None:
    (t,) = random_translator.stream([Request("bal kor", require=("Zürich",))], sample=True)
    assert t.cautions == ("line 1: in the translation, 'Zürich' is missing",)


def test_samples_are_as_many_as_asked_for_whatever_they_lack(random_translator: Translator) -> None:
    how = {"sample": True, "n_best": 12, "temperature": 0.4}
    free = [t.alternatives for t in random_translator.stream(LINES, **how)]
    assert any(len({c.tokens for c in found}) < 12 for found in free), "equal draws count too"
    words = [found[0].text.split()[:1] for found in free]
    lacking = [Request(line, require=("Zürich", *some)) for line, some in zip(LINES, words, strict=True)]
    assert [t.alternatives for t in random_translator.stream(lacking, **how)] == free
    forbidding = [Request(line, forbid=tuple(some)) for line, some in zip(LINES, words, strict=True)]
    for t, some in zip(random_translator.stream(forbidding, **how), words, strict=True):
        assert len(t.alternatives) == 12
        assert bool(t.cautions) == any(occurrences(phrase, c.text) for c in t.alternatives for phrase in some)
    how["n_best"] = 1
    one = [t.alternatives for t in random_translator.stream(forbidding, **how)]
    assert [t.alternatives for t in random_translator.stream(forbidding, beam=9, **how)] == one, "no best of several"


def test_each_part_of_a_split_line_gets_its_own_terms(random_translator: Translator) -> None:
    glossary = Glossary([("dem", "Zürich")])
    (t,) = random_translator.stream([Request("bal kor. dem gom. ban bar.", glossary=glossary)], max_source_tokens=8)
    assert occurrences("Zürich", t.text) == 1


def test_batches_and_order_change_nothing_whatever_lines_ask_for(random_translator: Translator) -> None:
    wishes: list[dict[str, object]] = [
        {},
        {"require": ("gom", "bal")},
        {"prefix": "kor dem"},
        {"forbid": ("dem", "kor")},
        {"settings": {"min_length": 9, "no_repeat_ngram": 2}},
        {"settings": {"sample": True, "temperature": 0.7}, "prefix": "bal"},
        {"protector": Protector(["number", "placeholder"]), "settings": {"repetition_penalty": 1.5}},
    ]
    lines = [f"{line} {{0}} 12" if i % 7 == 6 else line for i, line in enumerate(sentences(28, 8, seed=77))]
    requests = [Request(line, **wishes[i % 7]) for i, line in enumerate(lines)]  # type: ignore[arg-type]
    usual = random_translator.translate(requests)
    assert random_translator.translate(requests, batch_tokens=1) == usual
    assert random_translator.translate(requests, batch_lines=3, buffer_lines=5) == usual
    assert random_translator.translate(requests[::-1])[::-1] == usual
    assert usual[::7] == random_translator.translate(lines)[::7]
