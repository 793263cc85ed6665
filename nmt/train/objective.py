"""Which loss an update is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from nmt.model.seq2seq import Seq2Seq
from nmt.train.loss import Objective
from nmt.train.rdrop import RDropObjective
from nmt.train.rules import Rules


def objective_of(rules: Rules) -> Callable[[Seq2Seq], nn.Module]:
    """What makes of a model the module whose (batch, smoothing, pad) → (loss, nll) is differentiated."""
    if rules.rdrop_alpha is not None:
        return partial(RDropObjective, alpha=rules.rdrop_alpha)
    return Objective
