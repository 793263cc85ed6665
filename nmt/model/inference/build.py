"""From a model to the form of it that translates."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.hardware import fastest
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.transformer import FastTransformer
from nmt.model.seq2seq import Seq2Seq, State, Stepper
from nmt.model.transformer import Transformer


class Engine:
    """Keeps the inference form of a model, and makes it anew when a weight has changed since, or may learn."""

    def __init__(self, model: Seq2Seq, device: torch.device) -> None:
        self.model, self.device = model, device
        self.made_of: object = None
        self.made: CompiledTransformer | FastTransformer | None = None

    def __call__(self, precision: str) -> Stepper:
        """The form for this precision, "auto" the fastest: the model itself where no form of it is known.

        It then computes in bfloat16 if it should, else in float32.
        """
        arithmetic = cast(Arithmetic, fastest(self.device) if precision == "auto" else precision)
        if not FastTransformer.fits(self.model):
            return Cast(self.model) if arithmetic == "bfloat16" else self.model
        weights = list(self.model.parameters())
        now = arithmetic, [(weight.data_ptr(), weight._version) for weight in weights]
        learning = any(weight.requires_grad for weight in weights)  # fused optimizers change weights without a trace
        if self.made is None or now != self.made_of or learning:
            form = CompiledTransformer if CompiledTransformer.fits(self.model, arithmetic) else FastTransformer
            self.made, self.made_of = form(cast(Transformer, self.model), arithmetic), now
        return self.made


class Cast:
    """A model whose products are made in bfloat16, by torch's rules."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = model
        self.device = next(model.parameters()).device.type

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """As of Seq2Seq."""
        with torch.autocast(self.device, torch.bfloat16):
            return self.model.encode(src_BS, keep_BS)

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """As of Seq2Seq."""
        with torch.autocast(self.device, torch.bfloat16):
            return self.model.start(memory, keep_BS, beams)

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, State]:
        """As of Seq2Seq."""
        with torch.autocast(self.device, torch.bfloat16):
            return self.model.step(state, last_R)
