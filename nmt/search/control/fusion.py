"""Shallow fusion: a language model of the target has its say at every step (Gülçehre et al. 2015).

R rows · V vocabulary · T tokens so far
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from nmt.subwords.ngram import NgramModel


class Fusion:
    """Adds ``weights[sentence]`` times the log-probability that the sentence's language model gives each token."""

    def __init__(self, models: Sequence[NgramModel | None], weights: Sequence[float], bos: int, device: torch.device):
        self.models, self.weights, self.bos = models, weights, bos
        distinct = {id(model): model for model in models if model is not None}
        self.unigram_V = {key: torch.from_numpy(model.unigram_V).to(device) for key, model in distinct.items()}

    def __call__(self, log_probs_RV: Tensor, ids_RT: Tensor, sentences: Sequence[int]) -> Tensor:
        """Adds up logarithms: what the language model finds improbable loses."""
        known: dict[tuple[int, int, tuple[int, ...]], Tensor] = {}
        orders = (model.order for model in self.models if model is not None)
        recent = ids_RT[:, max(ids_RT.size(1) - max(orders, default=1) + 1, 0) :].tolist()
        begin = () if len(recent[0]) < ids_RT.size(1) else (self.bos,)
        for row, (ids, sentence) in enumerate(zip(recent, sentences, strict=True)):
            model, weight = self.models[sentence], self.weights[sentence]
            if model is None or not weight:
                continue
            context = (*begin, *ids)
            key = id(model), sentence, context
            if key not in known:
                known[key] = self._values(model, context) * weight
            log_probs_RV[row] += known[key]
        return log_probs_RV

    def _values(self, model: NgramModel, context: tuple[int, ...]) -> Tensor:
        """What `NgramModel.log_probs` gives, where the search computes."""
        weight, seen = model.after(context)
        values_V = self.unigram_V[id(model)] + weight
        if seen:
            own = dict(chain.from_iterable(zip(ids.tolist(), values.tolist(), strict=True) for ids, values in seen))
            places = torch.tensor(list(own), device=values_V.device)
            values_V[places] = torch.from_numpy(np.array(list(own.values()), np.float32)).to(values_V.device)
        return values_V
