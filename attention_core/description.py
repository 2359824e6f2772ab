"""Descriptions of variants and of inputs (``QKV`` records): text for a terminal, HTML with a picture for notebooks."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING

from attention_core.settings import Params, Setting
from attention_core.thumbnail import thumbnail

if TYPE_CHECKING:
    from attention_core.attention import Attention
    from attention_core.inputs.record import QKV

MAX_WIDTH = 100
"""Maximum width of a line, in characters."""
TOKENS, SIZE = 1024, 64
"""Number of tokens n and head size d for which the cost is stated."""
PICTURE_TOKENS = 64
"""Number of tokens in a picture."""


class InstanceHelp:
    """A descriptor that replaces ``__doc__``, so that Python's ``help(object)`` prints the text of ``object.help()``.

    On the class itself, ``__doc__`` is still the docstring.
    """

    def __init__(self, docstring: str | None) -> None:
        self.docstring = docstring

    def __get__(self, instance: Attention | None, owner: type) -> str | None:
        return self.docstring if instance is None else instance.help()


def as_text(attention: Attention) -> str:
    """Return the formula, settings, cost and source of a variant as lines of text; see ``Attention.help``."""
    variant = attention.variant
    causal = f"Not causal: {variant.causal_reason}" if variant.causal_reason else "Can be causal."
    return "\n".join(
        [
            f"{attention!r}: {variant.title}, family {variant.family}",
            *_wrap(variant.summary),
            "",
            "Formula (LaTeX):",
            f"    {variant.formula}",
            "",
            "Settings:",
            *(_setting_text(each, attention.params) for each in variant.params.settings()),
            *([] if variant.params.settings() else ["    none"]),
            "",
            f"Time: {variant.complexity}",
            *_wrap(_cost_text(attention)),
            *_wrap(causal),
            *_wrap(variant.note),
            f"Source: {variant.source.heading} ({variant.source.year}), {variant.source.url}",
            "",
            "Call it like torch's scaled_dot_product_attention. help(attention_core.Attention) lists its methods.",
        ]
    )


def as_html(attention: Attention) -> str:
    """Return the variant's settings, summary and cost, and its matrix on a fixed input, as HTML."""
    title, summary = escape(attention.title), escape(attention.variant.summary)
    return (
        f"<p><code>{escape(repr(attention))}</code> <b>{title}</b>. {summary} {_cost_text(attention)}</p>"
        f"{example_matrix(attention)}"
        f"<p>Attention matrix on {PICTURE_TOKENS} synthetic tokens that resemble their neighbours.</p>"
    )


def example_matrix(attention: Attention) -> str:
    """Return the attention matrix of one head on fixed synthetic tokens that resemble their neighbours, as HTML."""
    from attention_core.inputs.synthetic import SyntheticSpec, from_synthetic

    qkv = from_synthetic(SyntheticSpec(kind="locally_correlated", n=PICTURE_TOKENS, heads=1, sharpness=2.0))
    return thumbnail(attention.weights(qkv.q, qkv.k)[0], f"Attention matrix of {escape(attention.title)}")


def record_as_html(qkv: QKV) -> str:
    """Return a ``QKV``'s sizes, its notices, and the softmax matrix and entropy of its first tokens as HTML."""
    from attention_core.metrics.entropy import entropy
    from attention_core.registry import get

    weights = get("softmax").weights(qkv.q[:, :PICTURE_TOKENS], qkv.k[:, :PICTURE_TOKENS], causal=qkv.causal)
    excerpt = f" of the first {PICTURE_TOKENS} tokens" if max(qkv.n, qkv.m) > PICTURE_TOKENS else ""
    heads = "" if qkv.heads == 1 else f", averaged over {qkv.heads} heads"
    notices = "".join(f"<br>{escape(str(notice))}" for notice in qkv.notices)
    return (
        f"<p><code>{escape(repr(qkv))}</code>{notices}</p>{thumbnail(weights.mean(0), 'Softmax attention matrix')}"
        f"<p>Softmax attention{excerpt}{heads}. Mean entropy of a row: {entropy(weights).mean():.2f} nats.</p>"
    )


def _cost_text(attention: Attention) -> str:
    cost = attention.cost(TOKENS, SIZE)
    return (
        f"Cost of one head of {TOKENS:,} tokens of size {SIZE}: {cost.multiply_adds:,} multiply-adds, and at most "
        f"{cost.peak_elements:,} numbers in memory at the same time."
    )


def _setting_text(setting: Setting, params: Params) -> str:
    value = getattr(params, setting.name)
    if setting.choices:
        allowed = "one of " + ", ".join(map(repr, setting.choices))
    elif setting.kind == "bool":
        allowed = "True or False"
    else:
        allowed = f"{setting.low} to {setting.high}"
    lines = _wrap(f"{setting.name} = {value!r} ({allowed}). {setting.help}", "    ")
    return "\n".join(lines)


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, MAX_WIDTH, initial_indent=indent, subsequent_indent=indent and indent + "    ")
