"""Which loss an update is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from torch import nn

from nmt.model.seq2seq import Seq2Seq
from nmt.train.guided import GuidedObjective
from nmt.train.loss import Objective
from nmt.train.rdrop import RDropObjective
from nmt.train.rules import Rules

Make = Callable[[Seq2Seq], nn.Module]


def objective_of(rules: Rules) -> Make:
    """What makes of a model the module whose (batch, smoothing, pad) → (loss, nll) is differentiated."""
    make: Make = Objective if rules.rdrop_alpha is None else partial(RDropObjective, alpha=rules.rdrop_alpha)
    return make if rules.guide is None else partial(GuidedObjective, make=make, **asdict(rules.guide))
