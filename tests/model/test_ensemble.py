"""Several models as one."""

from __future__ import annotations

import pytest
import torch
from search.models import CONFIG, random_model

from nmt.model.compiling import AVAILABLE
from nmt.model.config import TransformerConfig
from nmt.model.ensemble import Ensemble
from nmt.model.inference.build import Engine
from nmt.model.inference.ensemble import CompiledEnsemble

OTHER = TransformerConfig.model_validate({**CONFIG.model_dump(), "width": 24, "decoder_layers": 1, "norm": "post"})
SIZE = 30


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble([random_model(SIZE), random_model(SIZE, 8), random_model(SIZE, 9, OTHER)]).eval()


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    src_BS = torch.randint(4, SIZE, (3, 6), generator=generator)
    keep_BS = torch.arange(6) < torch.tensor([[6], [4], [5]])
    tgt_BT = torch.randint(4, SIZE, (3, 5), generator=generator)
    tgt_BT[:, 0] = 2
    return src_BS, keep_BS, tgt_BT


@torch.inference_mode()
def test_probabilities_are_averages_of_the_models(ensemble: Ensemble) -> None:
    src_BS, keep_BS, tgt_BT = batch()
    together = ensemble.project(ensemble(src_BS, keep_BS, tgt_BT)).softmax(-1)
    apart = [model.project(model(src_BS, keep_BS, tgt_BT)).softmax(-1) for model in ensemble.models]
    assert torch.allclose(together, sum(apart) / 3, atol=1e-6)
    assert torch.allclose(together.sum(-1), torch.ones(3, 5), atol=1e-5)


@torch.inference_mode()
def test_stepping_equals_teacher_forcing_also_after_reordering(ensemble: Ensemble) -> None:
    src_BS, keep_BS, tgt_BT = batch()
    memory = ensemble.encode(src_BS, keep_BS)
    expected_BTV = ensemble.decode(memory, keep_BS, tgt_BT)
    state = ensemble.start(memory, keep_BS)
    order = torch.tensor([2, 0])
    for t in range(5):
        if t == 2:
            state, tgt_BT, expected_BTV = state.select(order), tgt_BT[order], expected_BTV[order]  # type: ignore[assignment]
        logits_RV, state = ensemble.step(state.reorder(torch.arange(len(tgt_BT))), tgt_BT[:, t])
        assert torch.allclose(logits_RV, expected_BTV[:, t], atol=1e-4)


@torch.inference_mode()
def test_a_model_beside_itself_is_itself() -> None:
    src_BS, keep_BS, tgt_BT = batch()
    model = random_model(SIZE)
    twice = Ensemble([model, model])
    alone = model.project(model(src_BS, keep_BS, tgt_BT)).log_softmax(-1)
    assert torch.allclose(twice.project(twice(src_BS, keep_BS, tgt_BT)), alone, atol=1e-5)


@pytest.mark.skipif(not AVAILABLE, reason="needs numba")
@torch.inference_mode()
def test_the_compiled_form_steps_as_the_models_do(ensemble: Ensemble) -> None:
    form = Engine(ensemble, torch.device("cpu"))("float32")
    assert isinstance(form, CompiledEnsemble)
    src_BS, keep_BS, tgt_BT = batch()
    ours, theirs = (it.start(it.encode(src_BS, keep_BS), keep_BS) for it in (form, ensemble))
    for t in range(5):
        logits_RV, ours = form.step(ours, tgt_BT[:, t])
        expected_RV, theirs = ensemble.step(theirs, tgt_BT[:, t])
        assert torch.allclose(logits_RV, expected_RV, atol=1e-4)
        if t == 2:
            order = torch.tensor([2, 0])
            ours, theirs, tgt_BT = ours.select(order), theirs.select(order), tgt_BT[order]


def test_models_of_unlike_vocabularies_are_refused() -> None:
    with pytest.raises(ValueError, match=r"share a vocabulary; theirs have \[30, 31\] tokens"):
        Ensemble([random_model(SIZE), random_model(SIZE + 1)])
