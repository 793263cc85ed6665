"""What a restart is compared with: whose change ends it, whose change is only told.

Settings are two trees of plain values: "fixed", without which weights and moments make no sense, and "told", under
whose change training goes on. Which setting is in which, the stage says that trains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nmt.errors import TrainingError

ORDER = (  # these put the data in another order
    "seed",
    "corpora",
    "groups",
    "train.batch_tokens",
    "train.accumulate",
    "train.max_source_tokens",
    "train.max_target_tokens",
    "train.corpus_temperature",
    "train.subword_dropout",
)
FREE = (  # when training ends, what it reports and keeps, where it runs: not worth a word
    "train.steps",
    "train.epochs",
    "train.minutes",
    "train.patience",
    "train.validate_every",
    "train.save_every",
    "train.keep_checkpoints",
    "train.best_by",
    "train.valid_beam",
    "train.valid_lines",
    "train.max_bad_steps",
    "train.device",
    "train.compile",
    "train.threads",
    "train.guided_alignment.path",
    "train.wait_minutes",
    "train.sharding",
)


def check_fixed(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> None:
    """Raises TrainingError naming what `new` settings must share with a checkpoint's `old` ones and don't.

    Tables that only one of them has are left out: `new` may be what is known before the data is made. The model that
    training started from isn't: none and some are a difference.
    """
    before, after = old.get("fixed", {}), new["fixed"]
    both = [key for key in {**before, **after} if key == "start_from" or (key in before and key in after)]
    changes = dict(differences({key: before.get(key) for key in both}, {key: after.get(key) for key in both}))
    if changes:
        digests = {
            "vocabulary": "another vocabulary",
            "data": "other training text",
            "start_from": "another beginning ([train] start_from)",
        }
        told = [digests.get(key.split(".")[0], text) for key, text in changes.items()]
        raise TrainingError(
            f"{place}: was trained with other settings: {'; '.join([*dict.fromkeys(told)][:5])}",
            "train in another folder with --run-dir, or let nmt run RECIPE --force train set the old checkpoints aside "
            "and start over; or put the settings back",
        )


def told_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], is_default: Callable[[str, Any], bool] = lambda key, value: False
) -> tuple[list[str], bool]:
    """Changes that training goes on under, for people to know; and whether they put the data in another order.

    A key that the checkpoint does not know, since nmt had none of that name, is no change where it `is_default`.
    """
    before, after = old.get("told", {}), new["told"]
    changed = {
        key: text
        for key, text in differences(before, after)
        if _at(before, key) is not None or not is_default(key, _at(after, key))
    }
    told = {key: text for key, text in changed.items() if key not in FREE}
    falls = after.get("train", {}).get("schedule", {}).get("kind") in {"linear", "cosine"}
    if falls and "train.steps" in changed:
        told["train.steps"] = f"{changed['train.steps']}, towards which the learning rate falls"
    return list(told.values()), any(key.startswith(ORDER) for key in told)


def differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every value that differs: its dotted key, and for people ``model.width 256 → 512``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from differences(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif (before := _text(old)) != (after := _text(new)):
        yield place, f"{place} {_short(before)} → {_short(after)}"


def _at(settings: Any, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    for step in key.split("."):
        settings = settings.get(step) if isinstance(settings, Mapping) else None
    return settings


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:12] + "…"
