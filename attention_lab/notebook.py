"""The matrix board, which shows attention matrices side by side, as an anywidget widget for notebooks."""

from typing import Literal

import numpy as np
import traitlets
from anywidget import AnyWidget

from attention_core.analysis.matrix.compare import allowed_pairs
from attention_core.comparison import Comparison, compare
from attention_core.errors import InputError
from attention_core.inputs.record import QKV
from attention_core.registry import Variants
from attention_lab.app_modules import Panel, board_script, board_texts, in_english, pack


class MatrixWidget(AnyWidget):
    """Attention matrices side by side, with a linked crosshair, zoom, exact values, a pinned row and export.

    Attributes:
        message: the matrices as bytes in the format of ``app.board_messages.packing``, which the board's script reads.
        settings: the texts and options of the board.
        pinned: index of the pinned row; None without one. It changes when the reader pins a row, and can be set.
    """

    _esm = board_script()
    message = traitlets.Bytes().tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    pinned = traitlets.Int(None, allow_none=True).tag(sync=True)


def show(
    shown: Comparison | QKV,
    variants: Variants = "softmax",
    *,
    head: int | None = 0,
    causal: bool = False,
    scale: Literal["shared", "panel"] = "shared",
    transform: Literal["linear", "sqrt", "log"] = "linear",
    panel_size: int = 420,
) -> MatrixWidget:
    """Draw attention matrices side by side in a notebook.

    Point at a cell to read its weight in every matrix. Click to pin a row; ``widget.pinned`` is its index.

    Args:
        shown: a comparison, or a record (queries, keys and values).
        variants: one variant or several to compute for a record, each as text such as ``local~window~4`` or as an
            ``Attention``. Ignored for a comparison, which has its own.
        head: index of the head; None for the mean of the heads' matrices.
        causal: whether future keys are hidden. Ignored for a comparison, which has its own setting.
        scale: one colour scale for all matrices, or one for each.
        transform: how weights map to colours.
        panel_size: the largest side of a matrix, in pixels.

    Raises:
        InputError: if the head does not exist, or a weight is infinite.
        LabError: if a variant is unknown or cannot be causal.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> widget = ac.show(ac.compare(*torch.randn(3, 2, 16, 8), ["softmax", "local~window~4"]), head=1)
        >>> widget.pinned = 3
    """
    comparison = compare(shown, variants=variants, causal=causal) if isinstance(shown, QKV) else shown
    comparison.qkv.check_head(head)
    panels = [_panel(comparison, word, head) for word in comparison.matrices]
    message, _ = pack(
        panels, comparison.qkv.tokens, comparison.qkv.key_labels, key="notebook", max_inline_bytes=float("inf")
    )
    return MatrixWidget(
        message=message,
        settings={
            "scale": scale,
            "transform": transform,
            "ceiling": 0.0,
            "unsigned": False,
            "percent": False,
            "categories": None,
            "panel_size": panel_size,
            "pins": True,
            "turns": False,
            "frame": 0,
            "last_frame": 0,
            "file_name": "attention-matrices",
            "text": "",
            "address": "",
            "texts": board_texts(in_english, pins=True),
        },
    )


def _panel(comparison: Comparison, word: str, head: int | None) -> Panel:
    """Return the matrix of variant ``word`` for the board, of one head or the mean of all.

    NaN for pairs not allowed.
    """
    attention, heads = comparison.attentions[word], slice(None) if head is None else slice(head, head + 1)
    matrix = comparison.matrices[word][heads].detach()
    if matrix.isinf().any():
        raise InputError("{title} has infinite weights on this input, which cannot be drawn.", title=attention.title)
    allowed = allowed_pairs(comparison.qkv, attention, causal=comparison.causal)[heads].any(0)
    values: np.ndarray = matrix.mean(0).masked_fill(~allowed, float("nan")).numpy()
    settings = ", ".join(f"{name} = {value}" for name, value in attention.params.changed().items())
    return Panel(key=word, title=attention.title, caption=settings, values=values)
