"""What a restart is compared with: whose change ends it, whose change is only told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nmt.errors import TrainingError

# Without these the same, weights and moments make no sense.
FIXED = ("model", "vocabulary", "data", "languages", "text", "optimizer kind")
# These put the data in another order.
ORDER = ("seed", "batch_tokens", "accumulate", "max_source_tokens", "max_target_tokens", "corpora")
FREE = (  # when training ends, what it reports and keeps, where it runs
    "steps",
    "epochs",
    "minutes",
    "patience",
    "validate_every",
    "save_every",
    "keep_checkpoints",
    "best_by",
    "valid_beam",
    "valid_lines",
    "max_bad_steps",
    "device",
    "threads",
)


def check_fixed(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> None:
    """Raises TrainingError naming what a checkpoint's settings and the present ones must share and don't."""
    changes = [
        change for key in FIXED if key in old for change in differences(_plain(old[key]), _plain(new.get(key)), key)
    ]
    if changes:
        raise TrainingError(
            f"{place}: was trained with other settings: {'; '.join(changes[:5])}",
            "put them back, choose another folder with --run-dir, or remove the checkpoints to train anew",
        )


def told_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Changes that training goes on under, for people to know; and whether they put the data in another order."""
    changed = [key for key in new if key not in (*FIXED, *FREE) and _plain(old.get(key)) != _plain(new[key])]
    texts = [text for key in changed for text in differences(_plain(old.get(key)), _plain(new[key]), key)]
    falls = isinstance(new.get("schedule"), Mapping) and new["schedule"].get("kind") in {"linear", "cosine"}
    if falls and old.get("steps") != new.get("steps"):
        texts.append(f"steps {old.get('steps')} → {new.get('steps')}, towards which the learning rate falls")
    return texts, any(key in ORDER for key in changed)


def differences(old: Any, new: Any, place: str) -> list[str]:
    """``model.width 256 → 512``, one for each value that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [text for key in keys for text in differences(old.get(key), new.get(key), f"{place}.{key}")]
    return [] if old == new else [f"{place} {_short(old)} → {_short(new)}"]


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 24 else text[:12] + "…"
