"""The comparison on the Matrices page: the chosen variants' matrices for the same input, side by side on one board."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, pairwise
from operator import not_

import numpy as np

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.matrix_board import Panel, matrix_board
from app.state import url
from app.state.session import AUTOMATIC, REFERENCE, SharedOptions
from app.ui import export_metadata, variant_picker
from app.ui.input_panel import ChosenInput, shown_tokens
from app.words.i18n import _, paragraph
from app.words.labels import label
from attention_core.analysis.matrix.compare import MatrixComparison
from attention_core.inputs.labels import number_repeats
from pages.matrices.options import OPENING_ROW, SUBJECT, MatricesOptions
from pages.matrices.words import caption, details, joined_tokens, scope_note, sign_note

BOARD = "matrices.board"
MAX_SCALE_EXTENSION = 1.25
"""Ratio to softmax's largest weight up to which a larger weight extends the colour scale."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The computed matrices of all variants of a comparison.

    Attributes:
        chosen: the input.
        view: head, mask and tokens shown.
        matrices: matrix of each variant, in display order.
        words: tokens of the rows shown.
        labels: these tokens, with numbers added to repeated ones.
        key_words: tokens of the columns shown: those of the rows, except in cross-attention.
        key_labels: these tokens, with numbers added to repeated ones.
        row: index of the pinned query, chosen by the visitor or by the page; None for no pinned query.
        difference: whether to show the difference from each variant's reference (softmax for nearly all).
    """

    chosen: ChosenInput
    view: MatrixView
    matrices: dict[ac.Attention, MatrixComparison]
    words: tuple[str, ...]
    labels: tuple[str, ...]
    key_words: tuple[str, ...]
    key_labels: tuple[str, ...]
    row: int | None
    difference: bool

    @property
    def hidden_tokens(self) -> list[str]:
        """The different special tokens that the matrices leave out."""
        qkv = self.chosen.qkv
        return [] if len(self.words) == qkv.n else list(dict.fromkeys(compress(qkv.tokens, qkv.special)))

    @property
    def hidden(self) -> str:
        """The special tokens that the matrices leave out, in words; empty for none."""
        return joined_tokens(self.hidden_tokens)

    @property
    def special_link(self) -> tuple[str, str]:
        """The text and the address of a link that shows or hides special tokens; empty without special tokens.

        The address keeps the pinned query, whose index counts the special tokens only if they are shown.
        """
        qkv, shows = self.chosen.qkv, not self.hidden_tokens
        if qkv.crosses or all(qkv.special) or not any(qkv.special):
            return "", ""
        others = [i for i, special in enumerate(qkv.special) if not special]
        row: int | None = self.row
        if row is not None:
            row = (others.index(row) if row in others else None) if shows else others[row]
        fields = SharedOptions.fields() | MatricesOptions.fields()
        values = {SharedOptions.special.name: not shows, MatricesOptions.row.name: row}
        address = "#" + url.query_string({name: fields[name].write(value) for name, value in values.items()})
        return _("Hide special tokens") if shows else _("Show them"), address

    @property
    def joined(self) -> list[bool]:
        """One flag per key shown: True if the token is a further part of the same character as the token before it."""
        qkv = self.chosen.qkv
        if qkv.crosses:
            return [False] * qkv.m
        return list(qkv.continues if len(self.words) == qkv.n else compress(qkv.continues, map(not_, qkv.special)))

    @property
    def unit(self) -> str:
        """Name of the quantity shown."""
        return _("difference of weights") if self.difference else _("weight")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Matrices on screen, by the variants' keys."""
        return {a.key: self.values(a) for a in self.visible}

    @property
    def names(self) -> dict[str, str]:
        """Names of the variants on screen, by key."""
        return {a.key: label(a) for a in self.visible}

    @property
    def visible(self) -> list[ac.Attention]:
        """Variants on the board; softmax's difference from itself is left out if there are other variants."""
        return [a for a in self.matrices if not self.difference or a.word != REFERENCE or len(self.matrices) == 1]

    @property
    def ceiling(self) -> float:
        """The end of the shared colour scale; see ``scale_end``."""
        most = max(float(np.nanmax(m.weights)) for a, m in self.matrices.items() if a.key == REFERENCE)
        sizes = [float(np.nanmax(np.abs(values))) for values in self.arrays.values() if not np.isnan(values).all()]
        return scale_end(most, max(sizes, default=0.0))

    def values(self, attention: ac.Attention) -> np.ndarray:
        """Return one variant's matrix as shown, ``[n, n]``."""
        return _values(self.matrices[attention], difference=self.difference)


def scale_end(softmax_max: float, largest_magnitude: float) -> float:
    """Return the value at which the shared colour scale ends; 0 if it ends at the largest weight on screen.

    The scale ends at softmax's largest weight if another weight is much larger and would make all others pale.
    """
    return 0.0 if largest_magnitude <= MAX_SCALE_EXTENSION * softmax_max else softmax_max


def compare(chosen: ChosenInput) -> Comparison:
    """Compute the matrices of all chosen variants."""
    special = SharedOptions.special.value
    view = MatrixView(source=chosen.source, head=chosen.head, causal=SharedOptions.causal.value, special=special)
    matrices = variant_picker.compute_for_each_variant(partial(cached.matrix, view))
    qkv = chosen.qkv
    words = qkv.names if special else shown_tokens(qkv)
    keys = qkv.key_labels if qkv.crosses else words
    MatricesOptions.row.restrict_to((None, OPENING_ROW, *range(len(words))))
    row: int | None = MatricesOptions.row.value
    if row == OPENING_ROW and (row := _subject_row(words)) is None:
        row = AUTOMATIC
        MatricesOptions.row.set(row)
    if row == AUTOMATIC:
        softmax = next((attention for attention in matrices if attention.key == REFERENCE), None)
        row = None if softmax is None else cached.informative_query(view, softmax)
    return Comparison(
        chosen,
        view,
        matrices,
        words=words,
        labels=number_repeats(words),
        key_words=keys,
        key_labels=number_repeats(keys),
        row=row,
        difference=MatricesOptions.view.value == "difference",
    )


def _subject_row(words: Sequence[str]) -> int | None:
    """Return the index at which the two tokens of ``SUBJECT`` occur in a row; None if they do not."""
    return next((i for i, pair in enumerate(pairwise(words)) if pair == SUBJECT), None)


def matrices_by_key(view: MatrixView, attentions: Iterable[ac.Attention], *, difference: bool) -> dict[str, np.ndarray]:
    """Return the variants' matrices ``[n, n]`` by key, for a file; they are computed again if no longer cached."""
    return {a.key: _values(cached.matrix(view, a), difference=difference) for a in attentions}


def show_board(comparison: Comparison) -> None:
    """Draw the matrices of all chosen variants on one board; a click pins a query.

    While a panel's slider is dragged, only this panel is drawn again. The page and the link follow when it is released.
    """
    hidden, difference = comparison.hidden, comparison.difference
    link, address = comparison.special_link
    view, n = comparison.view, comparison.chosen.qkv.m
    signs = sign_note(comparison.matrices, difference=difference)
    rule = _("Each row is a query. The stronger the blue, the more it attends to the key in that column.")

    def redraw(attention: ac.Attention) -> Panel:
        # Every session keeps this function while the page is open, so it refers to the settings, not to the matrices.
        return _panel(attention, cached.matrix(view, attention), n, hidden=hidden, difference=difference)

    matrix_board(
        [_panel(a, comparison.matrices[a], n, hidden=hidden, difference=difference) for a in comparison.visible],
        labels=comparison.labels,
        col_labels=comparison.key_labels if comparison.chosen.qkv.crosses else None,
        key=BOARD,
        scale=MatricesOptions.scale.value,
        transform=MatricesOptions.tone.value,
        pinned=comparison.row,
        on_pin=MatricesOptions.row.set,
        on_turn=variant_picker.set_budget,
        on_open=variant_picker.toggle_settings,
        redraw=partial(variant_picker.redraw, redraw),
        diverging=difference,
        ceiling=comparison.ceiling,
        above_ceiling=_("above softmax's maximum (up to {most})"),
        note=paragraph(
            "" if difference else signs,
            scope_note("" if comparison.chosen.qkv.crosses else hidden, all_heads=comparison.view.head is None),
        ),
        text=export_metadata.own_text(),
        link=link,
        address=address,
        reading=signs if difference else paragraph(rule, _("Click a row to pin it.")),
        touch_reading=signs if difference else rule,
        percent=True,
        unit=comparison.unit,
    )


def _values(compared: MatrixComparison, *, difference: bool) -> np.ndarray:
    return compared.difference if difference else compared.weights


def _panel(attention: ac.Attention, compared: MatrixComparison, n: int, *, hidden: str, difference: bool) -> Panel:
    knob = variant_picker.board_knob(attention, n)
    return Panel(
        attention.key,
        label(attention) if knob is None else _(attention.title),
        caption(
            attention,
            compared,
            difference=difference,
            hidden=hidden,
            shared_scale=MatricesOptions.scale.value == "shared",
        ),
        _values(compared, difference=difference),
        details=details(attention, compared, hidden=hidden),
        knob=knob,
        tooltip=_(attention.variant.summary),
        settings_label=_("Settings of {name}", name=_(attention.title)),
    )
