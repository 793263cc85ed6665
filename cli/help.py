"""What --help looks like: as wide as the terminal up to a limit, whole sentences, and names as manuals write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

WIDEST = 120  # columns: longer lines are hard to read


class Named:
    """A command whose arguments are told as MODEL, MODEL... or [MODEL], and choices as a|b."""

    options_metavar: str | None
    get_params: Callable[[Any], list[Any]]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the command's name in its usage."""
        found = [self.options_metavar, getattr(self, "subcommand_metavar", "")]
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        for one in arguments:
            name = one.metavar or one.name.upper()
            found.append((name if one.required else f"[{name}]") + "..." * (one.nargs != 1))
        return [piece for piece in found if piece]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments and the options with what they mean, options of one matter under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            if (record := one.get_help_record(ctx)) is None:
                continue
            if one.param_type_name == "argument":
                sections["Arguments"].append((_name(one), record[1]))
            else:
                heading = getattr(one, "rich_help_panel", None) or "Options"
                sections.setdefault(heading, []).append((_plain(record[0]), record[1]))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class Command(Named, TyperCommand):
    """A command by itself."""


class Group(Named, TyperGroup):
    """A command of commands, which tells the whole first sentence of each."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options, then commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with their first sentences, none of them cut."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(10_000)) for name, one in found if one is not None])


def _name(argument: Any) -> str:
    return f"{argument.metavar or argument.name.upper()}{'...' * (argument.nargs != 1)}"


def _plain(name: str) -> str:
    """`--metric <list[bleu|chrf]>` as `--metric bleu|chrf`."""
    return re.sub(r"<(?:list\[)?([^<>\]]+)\]?>", r"\1", name)
