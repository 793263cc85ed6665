"""What a GPU machine does with batches, as far as a processor can do it: other forms, other solvers, the same text."""

from __future__ import annotations

import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from model.recorded import Recorded
from search.models import sentences, translator

from nmt.errors import SettingsError
from nmt.model.inference.captured import CapturedTransformer
from nmt.search.control.request import Request
from nmt.search.crew import Crew, Turns, devices
from nmt.search.solve import Solver
from nmt.search.threads import side_by_side
from nmt.search.translate import Translator
from nmt.search.translation import Translation

CPU = torch.device("cpu")


class Captured(Solver):
    """A solver whose model has the form that it has on a GPU, captured works being recorded and replayed."""

    @cached_property
    def engine(self) -> Any:
        form = CapturedTransformer(self.model, "float32", rows=24)  # type: ignore[arg-type]
        form.graphs = Recorded()
        return lambda precision: form


@pytest.fixture(scope="module")
def both(vocabulary_path: Path) -> tuple[Translator, Translator]:
    """A translator, and one with the same model in its captured form."""
    usual, captured = translator(vocabulary_path), translator(vocabulary_path)
    old = captured.solver
    captured.solver = Captured(old.model, old.source, old.target, CPU)
    return usual, captured


def seen(found: list[Translation]) -> list[Any]:
    return [([one.tokens for one in t.alternatives], [one.finished for one in t.alternatives]) for t in found]


@pytest.mark.parametrize(
    "how",
    [
        {"beam": 4, "n_best": 3},
        {"beam": 1},
        {"beam": 5, "length_penalty": "average:1", "patience": 2.0},
        {"beam": 4, "beam_groups": 2, "diversity": 0.7, "n_best": 2},
        {"sample": True, "n_best": 3},
        {"beam": 3, "no_repeat_ngram": 2, "min_length": 3},
        {"beam": 2, "batch_lines": 5, "buffer_lines": 9},
    ],
    ids=str,
)
def test_the_captured_form_translates_alike(both: tuple[Translator, Translator], how: dict[str, Any]) -> None:
    lines = sentences(24, 20, seed=8)
    usual, captured = both
    assert seen(list(captured.stream(lines, workers=1, **how))) == seen(list(usual.stream(lines, workers=1, **how)))


def test_required_phrases_and_prefixes_are_kept_by_it_too(both: tuple[Translator, Translator]) -> None:
    first, second = both[0].translate(["bal", "kor"])
    asked = [Request("bal kor", require=(second.split(" ")[0],)), Request("kor", prefix=first)]
    usual, captured = (list(one.stream(asked, beam=4, workers=1)) for one in both)
    assert seen(captured) == seen(usual)


def test_workers_take_one_gpu_each() -> None:
    cuda = torch.device("cuda")
    assert devices(cuda, None, 4) == [cuda]
    assert devices(cuda, 3, 4) == [cuda, torch.device("cuda", 1), torch.device("cuda", 2)]
    assert devices(torch.device("cuda", 1), 2, 4) == [torch.device("cuda", 1), torch.device("cuda", 2)]
    assert devices(CPU, 16, 0) == [CPU]
    with pytest.raises(SettingsError, match="(?m)workers = 3: each has a GPU of its own, and this machine has 2$"):
        devices(cuda, 3, 2)
    with pytest.raises(SettingsError, match="has 2, of which 1 stand before cuda:1"):
        devices(torch.device("cuda", 1), 2, 2)


def test_copies_of_a_solver_share_the_batches(both: tuple[Translator, Translator]) -> None:
    usual, _ = both
    solver, crew = usual.solver, Crew()
    team = crew.on(solver, [CPU, torch.device("cpu", 0)])
    assert team[0] is solver and team[1].model is not solver.model and team[1].engine is not solver.engine
    assert crew.on(solver, [CPU, torch.device("cpu", 0)])[1] is team[1]
    turns, met = Turns([(one, one.engine("float32")) for one in team]), set[int]()

    def work(_: int) -> None:
        with turns.one() as (one, stepper):
            src = torch.tensor([[5, 6, 3]])
            stepper.encode(src, src > 0)
            met.add(team.index(one))

    side_by_side(work, range(20), 2)
    assert met <= {0, 1} and turns.free.qsize() == 2
    next(solver.model.parameters()).mul_(1.0)
    assert crew.on(solver, [CPU, torch.device("cpu", 0)])[1] is not team[1]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("beam", [1, 4])
def test_on_a_gpu_no_line_depends_on_its_batch(vocabulary_path: Path, precision: str, beam: int) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    model, lines = translator(vocabulary_path), sentences(40, 20, seed=8)
    expected = model.translate(lines, beam=beam)
    on_gpu = Translator(
        copy.deepcopy(model.model),
        model.source_vocabulary,
        model.target_vocabulary,
        model.source_cleaner,
        model.target_cleaner,
        max_source_tokens=64,
        settings=model.settings,
        device="cuda",
    )
    found = on_gpu.translate(lines, beam=beam, precision=precision)
    assert isinstance(on_gpu.solver.engine.made, CapturedTransformer)
    assert [on_gpu.translate([line], beam=beam, precision=precision)[0] for line in lines] == found
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= (38 if precision == "float32" else 20)
