"""Functions that the commands share: reading files, printing tables and wrapping long lines."""

import argparse
import json
import math
import re
import shutil
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from attention_core.errors import InputError

MAX_WIDTH = 100
"""Maximum width of a printed line, in characters; longer lines are hard to read."""

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The object to which each command adds its parser."""


def add_variants(parser: argparse.ArgumentParser) -> None:
    """Add the required option for the variants that a command compares."""
    parser.add_argument(
        "--variants",
        nargs="+",
        required=True,
        metavar="WORD",
        help="variants with their settings, such as softmax local~window~64",
    )


def print_rows(rows: Iterable[dict[str, Any]], form: str, *, as_json: bool) -> None:
    """Print each row of a table when it is measured, or all rows as JSON after the last one.

    Args:
        rows: the values of each row by column.
        form: the table's columns and the format of each, such as ``"tokens:>6 loss:>7.3f"``.
        as_json: whether to print JSON, which has all values. A number that is not finite becomes null.
    """
    if as_json:
        records = [
            {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in r.items()} for r in rows
        ]
        print(json.dumps(records, indent=2, allow_nan=False))
        return
    columns = dict(column.split(":") for column in form.split())
    for number, row in enumerate(rows):
        if number == 0:
            print(" ".join(f"{name:{re.split('[,.]', each)[0]}}" for name, each in columns.items()))
        print(" ".join(f"{row[name]:{each}}" for name, each in columns.items()), flush=True)


def check_folder(out: Path) -> None:
    """Raise ``InputError`` if the folder of a file to write does not exist, before anything is measured."""
    if not out.parent.is_dir():
        raise InputError("The folder {folder} does not exist. Create it first.", folder=out.parent)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file; an ``InputError`` says why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("{path} cannot be read: {why}.", path=path, why=error.strerror) from error


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        InputError: if the file cannot be read or has another encoding.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError("{path} is not a UTF-8 text file. Save it as UTF-8.", path=path) from error


def wrap(words: str, indent: str = "") -> str:
    """Return the words in lines that fit into the terminal and have at most ``MAX_WIDTH`` characters."""
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    return textwrap.fill(words, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
