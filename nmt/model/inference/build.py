"""From a model to the form of it that translates."""

from __future__ import annotations

import threading
from typing import Any, cast

import torch
from torch import Tensor, nn

from nmt.errors import SettingsError
from nmt.model.inference.captured import CapturedTransformer
from nmt.model.inference.compiled import CompiledTransformer
from nmt.model.inference.ensemble import CompiledEnsemble
from nmt.model.inference.hardware import fastest
from nmt.model.inference.linear import Arithmetic
from nmt.model.inference.transformer import FastTransformer
from nmt.model.seq2seq import Seq2Seq, State, Stepper

Form = CompiledTransformer | CompiledEnsemble | FastTransformer | CapturedTransformer


class Engine:
    """Keeps the inference form of a model, and makes it anew when a weight has changed since, or may learn."""

    def __init__(self, model: Seq2Seq, device: torch.device) -> None:
        self.model, self.device = model, device
        self.lock = threading.Lock()  # threads may ask for different precisions
        self.made_of: object = None
        self.made: Stepper | None = None
        self.held: list[tuple[dict[str, nn.Parameter | None], str, nn.Parameter]] = []

    def __call__(self, precision: str) -> Stepper:
        """The form for this precision, "auto" the fastest: the model itself where no form of it is known.

        It then computes in float32, on a GPU in the half precision asked for: on a processor that would move a line's
        score with the padding that its neighbours bring. Raises SettingsError for float16 on a processor.
        """
        arithmetic = self.arithmetic(precision)
        with self.lock:
            weights = self._weights()
            learning = any(weight.requires_grad for weight in weights)  # fused optimizers leave no trace of changes
            now = arithmetic, [(weight.data_ptr(), weight._version) for weight in weights]
            if self.made is None or now != self.made_of or learning:
                self.made = None  # its memory goes first
                self.made, self.made_of = self._make(arithmetic, learning), now
            return self.made

    def _make(self, arithmetic: Arithmetic, learning: bool) -> Stepper:
        form = form_of(self.model, self.device, arithmetic, learning)
        if form is not None:
            return form(cast(Any, self.model), arithmetic)
        half = self.device.type == "cuda" and arithmetic in ("bfloat16", "float16")
        return Cast(self.model, arithmetic) if half else self.model

    def _weights(self) -> list[nn.Parameter]:
        """The model's parameters, looked for again only where one has been replaced: a walk takes a millisecond."""
        if not self.held or any(own.get(name) is not weight for own, name, weight in self.held):
            self.held = [
                (module._parameters, name, weight)
                for module in self.model.modules()
                for name, weight in module._parameters.items()
                if weight is not None
            ]
        return [weight for _, _, weight in self.held]

    def arithmetic(self, precision: str) -> Arithmetic:
        """What this precision means here. Raises SettingsError for one that there is not."""
        arithmetic = cast(Arithmetic, fastest(self.device) if precision == "auto" else precision)
        if self.device.type == "cuda":
            return "float32" if arithmetic == "int8" else arithmetic
        if arithmetic == "float16":
            raise SettingsError("precision = 'float16' is for GPUs only", "take int8, bfloat16 or float32")
        return arithmetic


def form_of(
    model: Seq2Seq, device: torch.device, arithmetic: Arithmetic = "float32", learning: bool = False
) -> type[Form] | None:
    """The fastest known form; None where there is none, and for models on a GPU that learn while they translate.

    Captured steps would have to be captured anew after every update, in memory that training needs.
    """
    if device.type == "cuda":
        return CapturedTransformer if CapturedTransformer.fits(model) and not learning else None
    if CompiledTransformer.fits(model, arithmetic):
        return CompiledTransformer
    if CompiledEnsemble.fits(model, arithmetic):
        return CompiledEnsemble
    return FastTransformer if FastTransformer.fits(model) else None


class Cast:
    """A model whose products are made in bfloat16 or float16, by torch's rules."""

    def __init__(self, model: Seq2Seq, arithmetic: str) -> None:
        self.model, self.dtype = model, getattr(torch, arithmetic)
        self.device = next(model.parameters()).device.type

    def encode(self, src_BS: Tensor, keep_BS: Tensor) -> Tensor:
        """As of Seq2Seq."""
        with torch.autocast(self.device, self.dtype):
            return self.model.encode(src_BS, keep_BS)

    def start(self, memory: Tensor, keep_BS: Tensor, beams: int = 1) -> State:
        """As of Seq2Seq."""
        with torch.autocast(self.device, self.dtype):
            return self.model.start(memory, keep_BS, beams)

    def step(self, state: State, last_R: Tensor) -> tuple[Tensor, State]:
        """As of Seq2Seq."""
        with torch.autocast(self.device, self.dtype):
            return self.model.step(state, last_R)
