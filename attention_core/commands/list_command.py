"""The command ``list``, which prints the variants."""

import argparse

from attention_core import registry
from attention_core.commands.command_line import Commands


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser(
        "list",
        help="list the variants: each variant's name for the other commands, its family, how its time grows, "
        "and whether it can be causal",
    )
    parser.set_defaults(command=_run)


def _run(_: argparse.Namespace) -> None:
    rows = [
        (each.key, each.family, each.complexity, "not causal" if each.causal_reason else "causal")
        for each in registry.all_variants()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip())
