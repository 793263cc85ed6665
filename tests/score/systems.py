"""Toy systems: the references with words dropped, swapped or replaced, more of them in one than in the other."""

from __future__ import annotations

import random

WORDS = """
the a harbour ship captain morning night storm old new small quiet well-known sails waits leaves sees finds letter
island north-west wind slowly never often under before and
"""


def references(lines: int = 60, seed: int = 3) -> list[str]:
    draw = random.Random(seed)
    texts = (" ".join(draw.choices(WORDS.split(), k=draw.randint(3, 25))) for _ in range(lines))
    return [text[:1].upper() + text[1:] + "." for text in texts]


def system(lines: list[str], noise: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(_spoiled(line.split(), noise, draw)) for line in lines]


def _spoiled(words: list[str], noise: float, draw: random.Random) -> list[str]:
    kept = [
        draw.choice(WORDS.split()) if draw.random() < noise else word for word in words if draw.random() > noise / 3
    ]
    if len(kept) > 1 and draw.random() < noise:
        i = draw.randrange(len(kept) - 1)
        kept[i], kept[i + 1] = kept[i + 1], kept[i]
    return kept
