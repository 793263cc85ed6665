"""The model's own log-probability of a given translation: teacher forcing.

B batch · S source · T target · D width · V vocabulary · L labels
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.batches.batch import Batch
from nmt.model.seq2seq import Seq2Seq

_CHUNK = 1024  # labels whose logits are held at once


def force(model: Seq2Seq, batch: Batch, pad: int) -> list[list[float]]:
    """Of each pair, the log-probability of every target token and of the end mark, in nats, as search counts them."""
    x_BTD = model(batch.src_BS, batch.keep_BS, batch.tgt_BT)
    real_BT = batch.out_BT != pad
    x_LD, labels_L = x_BTD[real_BT], batch.out_BT[real_BT]
    gains_L = torch.cat([_gains(model, x, y) for x, y in zip(x_LD.split(_CHUNK), labels_L.split(_CHUNK), strict=True)])
    return [gains.tolist() for gains in gains_L.split(real_BT.sum(1).tolist())]


def _gains(model: Seq2Seq, x_LD: Tensor, labels_L: Tensor) -> Tensor:
    log_probs_LV = model.project(x_LD).log_softmax(-1, dtype=torch.float32)
    return log_probs_LV.gather(1, labels_L[:, None])[:, 0]
