"""What only a GPU can show of training on one. `pytest -m gpu` runs these."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from train.toys import PAD, model, optimizer, pairs

from nmt.batches.batch import Batch
from nmt.model.config import DotConfig
from nmt.train.compiled import compile_layers
from nmt.train.optimizer import sgd
from nmt.train.rules import Rules
from nmt.train.update import ALONE, add_up, learn

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
CUDA = torch.device("cuda")
BFLOAT16 = Rules(precision="bfloat16")


def batches() -> list[Batch]:
    return [pairs().load(rows).pinned() for update in pairs().updates(0)[:3] for rows in update]


def of_width_64(**changes: Any) -> Any:
    return model(width=64, dropout=0.0, attention=DotConfig(heads=2), **changes)


@pytest.mark.parametrize("compiled", [False, True], ids=["", "compiled"])
def test_losses_and_gradients_are_those_of_a_processor(compiled: bool) -> None:
    here, there = of_width_64(), of_width_64().to(CUDA)
    if compiled:
        compile_layers(there)
    for batch in batches():
        low = learn(there, sgd(there), [batch], rate=0.0, rules=BFLOAT16, pad=PAD)
        one, other = (learn(m, sgd(m), [batch], rate=0.1, rules=Rules(), pad=PAD) for m in (here, there))
        assert (one.loss, one.norm) == pytest.approx((other.loss, other.norm), rel=1e-4)
        assert low.loss == pytest.approx(one.loss, rel=0.05)


def test_between_layers_all_is_bfloat16() -> None:
    there, kinds = of_width_64().to(CUDA), set[torch.dtype]()
    for side in (there.encoder, there.decoder):
        for layer in side.layers:
            layer.register_forward_hook(lambda layer, given, x: kinds.add(x.dtype))
    learn(there, sgd(there), batches(), rate=0.1, rules=BFLOAT16, pad=PAD)
    assert kinds == {torch.bfloat16}


def test_an_updates_passes_wait_for_nothing() -> None:
    there = of_width_64().to(CUDA).train()
    learn(there, optimizer(there), batches(), rate=0.1, rules=BFLOAT16, pad=PAD)
    tokens = sum(batch.tokens for batch in batches())
    some = batches()
    torch.cuda.set_sync_debug_mode("error")
    try:
        add_up(there, some, tokens=tokens, rules=BFLOAT16, pad=PAD, ranks=ALONE)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_fused_kernels_take_all_attention() -> None:
    there = of_width_64().to(CUDA)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):  # an error where neither can
        learn(there, sgd(there), batches(), rate=0.1, rules=BFLOAT16, pad=PAD)
