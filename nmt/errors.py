"""What a user can cause and mend.  Everything else that is raised is a bug of ours and keeps its traceback."""

from __future__ import annotations


class NmtError(Exception):
    """A problem the user can fix: `problem` names the place, the value and the rule; `hint` is one thing to do."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class RecipeError(NmtError):
    """A recipe that cannot be read, or holds a value that breaks a rule."""


class SettingsError(NmtError):
    """Settings of search that break a rule, or don't fit together."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem, hint)
        if hint:
            self.add_note(f"hint: {hint}")  # programs give settings too: their traceback tells it


class DataError(NmtError):
    """A text file that is missing, unreadable, invalid UTF-8, or out of step with its other side."""


class ModelError(NmtError):
    """A model folder that is incomplete, damaged, or whose parts do not belong together."""


class TrainingError(NmtError):
    """Training that cannot go on: non-finite losses in a row, nothing left to train on, changed settings on resume."""


class OutputError(NmtError):
    """A result that cannot be written: full disk, missing folder, no permission."""
