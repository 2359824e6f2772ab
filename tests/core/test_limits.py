"""Tests of limits: each is defined once, is used, and is overridden nowhere."""

import ast
import itertools
import re
from dataclasses import fields
from pathlib import Path

import pytest

from attention_core.limits import HOSTED, OWN_MACHINE, Limits

ROOT = Path(__file__).parents[2]
FILES = [
    file
    for top in ("attention_core", "app", "pages")
    for file in sorted((ROOT / top).rglob("*.py"))
    if file.name != "limits.py"
]
SMALLER = {
    "Tokens": HOSTED.sweep_tokens,
    "Numbers": HOSTED.synthetic_numbers,
    "Heads": HOSTED.heads,
    "Bytes": HOSTED.timed_bytes,
    "Characters": HOSTED.text_characters,
}
"""Limits of the smaller profile, by unit. A docstring begins with its unit ("Maximum tokens") or says "in tokens"."""
UNIT = re.compile(
    r"^(?:[\w ]*\bnumber of |(?:largest|maximum|minimum|smallest|shortest|longest|default) |fewest |most )?(?:\w+ )?"
    r"(tokens|numbers|heads|bytes|characters)\b|[^.]*\bin (tokens|bytes|characters)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("field", [field.name for field in fields(Limits)])
def test_every_limit_is_used(field):
    assert any(re.search(rf"\.{field}\b", file.read_text()) for file in FILES)


def test_hosted_limits_are_at_most_the_local_ones():
    # More visitors share the cache, so it holds more results.
    more = {f.name for f in fields(Limits) if getattr(HOSTED, f.name) > getattr(OWN_MACHINE, f.name)}
    assert more == {"cache_entries"}


def constants(text):
    """Yield a module's numeric constants as ``(name, value, unit)``, with the unit that each docstring names."""
    body = ast.parse(text).body
    for node, below in itertools.pairwise(body):
        has_docstring = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and has_docstring:
            value = eval_number(node.value)
            unit = UNIT.search(str(below.value.value))
            if value is not None and unit:
                yield node.targets[0].id, value, (unit[1] or unit[2]).capitalize()


def eval_number(node):
    """Return the value of a number or of a product or power of numbers; None for anything else."""
    plain = all(isinstance(part, (ast.Constant, ast.BinOp, ast.operator)) for part in ast.walk(node))
    value = eval(compile(ast.Expression(node), "", "eval")) if plain else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def constants_beyond_the_limits(text):
    return [(name, value) for name, value, unit in constants(text) if value > SMALLER[unit]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_no_constant_exceeds_the_limits_of_the_smaller_profile(file):
    assert not constants_beyond_the_limits(file.read_text())


def test_limits_check_detects_violations():
    beyond = 'MOST = 2**20\n"""Tokens at most."""\nALIVE = 2 * 3**20\n"""Numbers held."""\n'
    assert constants_beyond_the_limits(beyond) == [("MOST", 2**20), ("ALIVE", 2 * 3**20)]
    assert not constants_beyond_the_limits(
        'MOST = 512\n"""Tokens at most."""\nBLOCK = 2**30\n"""Cells of a table."""\nX = "a"\n"""Y."""\n'
    )
