"""No line feels its company: the same digits in any batch, order and number of workers; scoring gives search's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from search.models import CONFIG, random_model, sentences, translator

from nmt.model import compiling
from nmt.model.config import TransformerConfig
from nmt.model.ensemble import Ensemble
from nmt.model.seq2seq import Seq2Seq
from nmt.search.control.request import Request
from nmt.search.follow import Watching
from nmt.search.length import parse_penalty
from nmt.search.look import _look_together, look
from nmt.search.translate import Translator

LINES = [*sentences(5, 7, seed=61), "", " ".join(sentences(3, 7, seed=2)), "bal kor. dem gom."]
KINDS: dict[str, dict[str, Any]] = {
    "compiled": {},
    "by rows": {"position": {"kind": "rotary"}, "activation": "gelu", "feedforward": 2048},
    "no form": {"attention": {"heads": 2, "key_width": 5}},
}
ASKED: list[dict[str, Any]] = [
    {"alignment": True, "coverage_penalty": 0.7},
    {"precision": "int8", "coverage_penalty": 0.7, "beam_groups": 3},
]
WAYS: list[dict[str, Any]] = [{"batch_lines": 1}, {"batch_tokens": 40, "workers": 3, "buffer_lines": 5}]


@pytest.fixture(scope="module", params=[*KINDS, "ensemble"])
def ours(request: pytest.FixtureRequest, vocabulary_path: Path) -> Translator:
    if request.param == "ensemble":
        wider = TransformerConfig.model_validate({**CONFIG.model_dump(), "width": 32, "decoder_layers": 1})
        model: Seq2Seq = Ensemble([random_model(340, opinions=2), random_model(340, 8, wider, 2)]).eval()
    else:
        config = TransformerConfig.model_validate({**CONFIG.model_dump(), **KINDS[request.param]})
        model = random_model(340, config=config, opinions=2)
    return translator(vocabulary_path, model=model, limit=40)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "-".join(asked))
def test_all_that_is_told_of_a_line_is_the_same_in_any_company(ours: Translator, asked: dict[str, Any]) -> None:
    asked = {"n_best": 2, "beam": 3, **asked}
    usual = [one.alternatives for one in ours.stream(LINES, **asked)]
    assert len({one[0].tokens for one in usual}) > 4
    for way in WAYS:
        assert [one.alternatives for one in ours.stream(LINES, **asked, **way)] == usual
    backwards = [one.alternatives for one in ours.stream(LINES[::-1], **asked)]
    assert backwards[::-1] == usual


def test_given_translations_score_the_same_in_any_company(ours: Translator) -> None:
    texts = LINES[1:] + LINES[:1]
    usual = ours.rescore(LINES, texts)
    assert len({one.score for one in usual}) > 6
    for way in WAYS:
        assert ours.rescore(LINES, texts, **way) == usual
    assert ours.rescore(LINES[::-1], texts[::-1])[::-1] == usual
    assert [ours.rescore([source], [text])[0] for source, text in zip(LINES, texts, strict=True)] == usual


def test_what_search_found_scores_to_the_last_digit_what_search_said(ours: Translator) -> None:
    if not isinstance(ours.solver.scorer("float32"), Watching):
        pytest.skip("in torch's operations, steps of one hypothesis and of several are made in other shapes")
    found = [(one.source, c) for one in ours.stream(LINES, n_best=4) for c in one.alternatives]
    pairs = [(source, c) for source, c in found if tuple(ours.target_vocabulary.pieces(c.text)) == c.tokens]
    scored = ours.rescore([source for source, _ in pairs], [c.text for _, c in pairs])
    assert len(pairs) > 1
    assert [one.token_log_probabilities for one in scored] == [c.token_log_probabilities for _, c in pairs]


@pytest.mark.skipif(not compiling.AVAILABLE, reason="needs numba")
def test_what_steps_look_at_is_what_the_model_attends_to(ours: Translator) -> None:
    asked = ours._settings({})
    with ours._inference():
        tasks = ours._tasks([Request(line) for line in LINES[:5]], 0, asked)
        parts = [part for task in tasks for part in task.parts]
        for _ in ours._solve(parts, 3, asked, parse_penalty("none")):
            pass
        look(ours.solver, parts, 2, asked)
        ours_maps = [part.maps for part in parts]
        for part in parts:
            part.maps = []
        _look_together(ours.solver, [(part, found) for part in parts for found in part.hypotheses[:2]], asked)
    for one, other in zip(ours_maps, (part.maps for part in parts), strict=True):
        assert len(one) == 2
        for map_TS, same_TS in zip(one, other, strict=True):
            torch.testing.assert_close(map_TS, same_TS, atol=1e-5, rtol=1e-4)
