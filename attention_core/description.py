"""Descriptions of a variant with its settings, as plain text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING

from attention_core.settings import Params, Setting

if TYPE_CHECKING:
    from attention_core.variant import Attention

WIDEST = 100
"""Maximum width of a line, in characters."""
TOKENS, SIZE = 1024, 64
"""Number of tokens and size of the head for which the cost is stated."""


def as_text(attention: Attention) -> str:
    """Return the formula, settings, cost and source of a variant as lines of text; see ``Attention.help``."""
    variant, cost = attention.variant, attention.cost(TOKENS, SIZE)
    causal = f"Not causal: {variant.causal_reason}" if variant.causal_reason else "Can be causal."
    return "\n".join(
        [
            f"{attention!r}: {variant.title}, family {variant.family}",
            *_wrapped(variant.summary),
            "",
            "Formula (LaTeX):",
            f"    {variant.formula}",
            "",
            "Settings:",
            *(_setting(each, attention.params) for each in variant.params.settings()),
            *([] if variant.params.settings() else ["    none"]),
            "",
            f"Time: {variant.complexity}",
            *_wrapped(
                f"Cost of one head of {TOKENS:,} tokens of size {SIZE}: {cost.multiply_adds:,} multiply-adds, and at "
                f"most {cost.peak_elements:,} numbers in memory at the same time."
            ),
            *_wrapped(causal),
            *_wrapped(variant.note),
            f"Source: {variant.source.heading} ({variant.source.year}), {variant.source.url}",
        ]
    )


def as_html(attention: Attention) -> str:
    """Return the variant with its settings, its title and its summary as a line of HTML."""
    title, summary = escape(attention.title), escape(attention.variant.summary)
    return f"<p><code>{escape(repr(attention))}</code> <b>{title}</b>. {summary}</p>"


def _setting(setting: Setting, params: Params) -> str:
    value = getattr(params, setting.name)
    if setting.choices:
        allowed = "one of " + ", ".join(map(repr, setting.choices))
    elif setting.kind == "bool":
        allowed = "True or False"
    else:
        allowed = f"{setting.low} to {setting.high}"
    lines = _wrapped(f"{setting.name} = {value!r} ({allowed}). {setting.help}", "    ")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDEST, initial_indent=indent, subsequent_indent=indent and indent + "    ")
