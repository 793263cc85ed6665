"""A stepper over invented probabilities: the next token depends on the whole prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from nmt.model.seq2seq import State

PAD, UNK, BOS, EOS = 0, 1, 2, 3
FIRST = 4  # first ordinary token


def start(sentences: int) -> State:
    """Nothing written yet. Each sentence remembers its number, each row its prefix, padded to 16."""
    numbers = torch.arange(sentences)
    return State((numbers,), (torch.full((sentences, 16), PAD),), 1, 0)


def stepper(logits_of: Callable[[int, tuple[int, ...]], Tensor]) -> Callable[[State, Tensor], tuple[Tensor, State]]:
    """A step that asks `logits_of` (sentence, prefix) for each row."""

    def step(state: State, last_R: Tensor) -> tuple[Tensor, State]:
        numbers = state.sentences[0].repeat_interleave(state.beams).tolist()
        written = state.rows[0].clone()
        if state.step:
            written[:, state.step - 1] = last_R
        prefixes = [tuple(row[: state.step]) for row in written.tolist()]
        logits = torch.stack([logits_of(number, prefix) for number, prefix in zip(numbers, prefixes, strict=True)])
        return logits, State(state.sentences, (written,), state.beams, state.step + 1)

    return step


def scripted(paths: Mapping[tuple[int, ...], float], size: int) -> Callable[[int, tuple[int, ...]], Tensor]:
    """Log-probabilities that give each of `paths` (end mark written out) its value, all of it on the first token.

    The tokens after the first cost nothing, and what is on no path is impossible but for a rest on the unknown token,
    which keeps every row a distribution.
    """

    def logits(_: int, prefix: tuple[int, ...]) -> Tensor:
        row = torch.full((size,), -torch.inf, dtype=torch.float64)
        for path, value in paths.items():
            if path[: len(prefix)] == prefix and len(prefix) < len(path):
                row[path[len(prefix)]] = value if not prefix else 0.0
        rest = 1 - float(row.exp().sum())
        row[UNK] = torch.tensor(rest).log() if rest > 1e-12 else -torch.inf
        return row.float()

    return logits
