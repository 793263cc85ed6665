"""Sentences in one row without their padding, and back.

B batch · T places of a sentence, padding included · L places before attention · N rows: real tokens, then some more
D width · P parts · H heads · E width of a head

Whatever treats each token by itself – most of a Transformer – need not see padding. Attention does: it wants sentences
apart, and heads too, so taking the padding in there costs no copy more than the heads already do. Sentences have a
multiple of eight places there: a softmax over 15 keys takes twelve times as long as one over 16. And tokens are made up
to a multiple of 64 rows: for each new number of rows oneDNN compiles its products anew, a tenth of an update's time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

PLACES, ROWS = 8, 64  # numbers of either are multiples of these


class Packing:
    """Where the real tokens of padded sentences stand: `keep_BT` is True there.

    In padding, and in the rows after the real tokens, stands something finite, whatever it is. Nothing there gets a
    gradient or gives one.
    """

    def __init__(self, keep_BT: Tensor) -> None:
        self.keep_BT = keep_BT
        self.keep_BL = torch.nn.functional.pad(keep_BT, (0, -keep_BT.size(1) % PLACES))
        sentences, tokens = keep_BT.nonzero(as_tuple=True)
        self.real = len(tokens)
        self.starts_B = torch.nn.functional.pad(keep_BT.sum(1).cumsum(0), (1, 0))  # rows; one more, the end of the last
        self.number_BL = torch.zeros_like(self.keep_BL, dtype=torch.long)  # a real token's own, some one's in padding
        self.number_BL[sentences, tokens] = torch.arange(self.real, device=keep_BT.device)
        more = (0, -self.real % ROWS)  # as many times the first place of all
        self.sentence_N, self.token_N = torch.nn.functional.pad(sentences, more), torch.nn.functional.pad(tokens, more)
        self._places: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def pack(self, x_BTD: Tensor) -> Tensor:
        """The rows x_ND."""
        places_N, rows_M = self._flat()
        packed: Tensor = _Pick.apply(x_BTD.flatten(0, 1), places_N, rows_M, self.keep_BT.flatten()[:, None], None)
        return packed

    def pad(self, x_ND: Tensor) -> Tensor:
        """Sentences x_BTD of the rows."""
        places_N, rows_M = self._flat()
        padded: Tensor = _Pick.apply(x_ND, rows_M, places_N, None, self.real)
        return padded.view(*self.keep_BT.shape, -1)

    def apart(self, x_ND: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
        """Each of the `parts` that stand side by side in x_ND, as BHLE."""
        into, back = self.places(parts, heads)
        batch, length = self.keep_BL.shape
        each = parts * heads
        x_PBHLE = _Pick.apply(x_ND.reshape(len(x_ND) * each, -1), into, back, None, self.real * each)
        return tuple(x_PBHLE.view(parts, batch, heads, length, -1).unbind(0))

    def together(self, x_BHLE: Tensor) -> Tensor:
        """The heads of each row side by side."""
        heads = x_BHLE.size(1)
        into, back = self.places(1, heads)
        keep_BHL = self.keep_BL[:, None].expand(-1, heads, -1)
        x_RE = _Pick.apply(x_BHLE.reshape(-1, x_BHLE.size(3)), back, into, keep_BHL.reshape(-1, 1), None)
        return x_RE.view(len(self.token_N), -1)

    def _flat(self) -> tuple[Tensor, Tensor]:
        """For every row its place in BT, and for every place its row."""
        length = self.keep_BT.size(1)
        return self.sentence_N * length + self.token_N, self.number_BL[:, :length].flatten()

    def places(self, parts: int, heads: int) -> tuple[Tensor, Tensor]:
        """For every place in PBHL its row in NPH, and for every row in NPH its place in PBHL."""
        if (parts, heads) not in self._places:
            batch, length = self.keep_BL.shape
            part_P, head_H = (torch.arange(n, device=self.keep_BL.device) for n in (parts, heads))
            row_PBHL = (self.number_BL[:, None] * parts + part_P[:, None, None, None]) * heads + head_H[:, None]
            sentence_NPH = part_P[:, None] * batch + self.sentence_N[:, None, None]
            place_NPH = (sentence_NPH * heads + head_H) * length + self.token_N[:, None, None]
            self._places[parts, heads] = row_PBHL.flatten(), place_NPH.flatten()
        return self._places[parts, heads]


class _Pick(torch.autograd.Function):
    """Rows by their number. Every real one is picked once: so the gradient is picked too, not added up.

    Of the rows picked from, those where `keep` is False, and those from number `real` on, get no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, x_RE: Tensor, into_M: Tensor, back_R: Tensor, keep_R1: Tensor | None, real: int | None
    ) -> Tensor:
        ctx.save_for_backward(back_R, keep_R1)
        ctx.real = real
        return x_RE.index_select(0, into_M)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_ME: Tensor) -> tuple[Tensor | None, ...]:
        back_R, keep_R1 = ctx.saved_tensors
        d_RE = d_ME.index_select(0, back_R)
        if keep_R1 is not None:
            d_RE.mul_(keep_R1.to(d_RE.dtype))
        if ctx.real is not None:
            d_RE[ctx.real :].zero_()
        return d_RE, None, None, None, None
