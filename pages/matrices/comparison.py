"""The comparison: every chosen variant's matrix on the same queries, keys and values, on one board."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

import attention_core as ac
from app.jobs import cached, dispatch
from app.jobs.cached import View
from app.matrix_board import BoardEvent, Knob, Panel, matrix_board
from app.state.session import AUTOMATIC, REFERENCE, Visit
from app.ui import variant_picker
from app.ui.input_panel import Chosen, shown_tokens
from app.words.i18n import _
from app.words.labels import label, readable
from attention_core.analysis.matrix.compare import Compared
from attention_core.inputs.labels import number_repeats
from pages.matrices.options import MatricesOptions
from pages.matrices.words import caption

BOARD = "matrices.board"


@dataclass(frozen=True, eq=False)
class Found:
    """All variants of a comparison, computed.

    Attributes:
        chosen: the input.
        view: how it is looked at.
        matrices: each variant's matrix, in the order shown.
        words: one token per row and column shown.
        labels: the same, repeats numbered.
        row: the query that is pinned, by the visitor or from the start; None for none.
        difference: whether the difference from each variant's reference is shown, softmax for nearly all.
    """

    chosen: Chosen
    view: View
    matrices: dict[ac.Attention, Compared]
    words: tuple[str, ...]
    labels: tuple[str, ...]
    row: int | None
    difference: bool

    @property
    def unit(self) -> str:
        """What the numbers shown are."""
        return _("difference of weights") if self.difference else _("weight")

    @property
    def shown(self) -> dict[str, np.ndarray]:
        """The matrices on screen by the variant's key."""
        return {a.key: self.values(a) for a in self.drawn}

    @property
    def names(self) -> dict[str, str]:
        """The variants' names on screen by key."""
        return {a.key: label(a) for a in self.drawn}

    @property
    def drawn(self) -> list[ac.Attention]:
        """The variants on the board; softmax's difference from itself is left out beside others."""
        return [a for a in self.matrices if not self.difference or a.word != REFERENCE or len(self.matrices) == 1]

    @property
    def most_of_reference(self) -> float:
        """Softmax's largest weight, at which the shared scale ends: one cell beyond it would wash out all others."""
        return max(float(np.nanmax(m.weights)) for a, m in self.matrices.items() if a.key == REFERENCE)

    def values(self, attention: ac.Attention) -> np.ndarray:
        """One variant's matrix as it is shown, ``[n, n]``."""
        return _values(self.matrices[attention], difference=self.difference)


def of(chosen: Chosen) -> Found:
    """Compute every chosen variant."""
    special = Visit.special.value
    view = View(source=chosen.source, head=chosen.head, causal=Visit.causal.value, special=special)
    matrices = variant_picker.of_each(partial(cached.matrix, view))
    qkv = chosen.qkv
    words = qkv.tokens if special else shown_tokens(qkv)
    MatricesOptions.row.fit((None, *range(len(words))))
    row: int | None = MatricesOptions.row.value
    if row == AUTOMATIC:
        first = next((attention for attention in matrices if attention.key == REFERENCE), None)
        row = None if first is None else cached.telling_row(view, first)
    return Found(chosen, view, matrices, words, number_repeats(words), row, MatricesOptions.view.value == "difference")


def again(view: View, attentions: Iterable[ac.Attention], *, difference: bool) -> dict[str, np.ndarray]:
    """The variants' matrices, ``[n, n]``, by their keys: for a file, which is made long after they were shown."""
    return {a.key: _values(cached.matrix(view, a), difference=difference) for a in attentions}


def show(found: Found) -> None:
    """Draw every chosen variant's matrix on one board; a click pins a query.

    While a panel's knob is held, that panel alone is drawn again; the rest of the page, and the link, follow when it is
    let go.
    """
    n = found.chosen.qkv.n
    matrix_board(
        [_panel(a, found.matrices[a], n, difference=found.difference) for a in found.drawn],
        labels=found.labels,
        key=BOARD,
        scale=MatricesOptions.scale.value,
        transform=MatricesOptions.tone.value,
        pinned=found.row,
        on_pin=_pin,
        on_turn=_turn,
        # Held as long as the page is open, by each visitor: what is looked at, and nothing that was computed.
        redraw=partial(_redraw, found.view, n, difference=found.difference),
        on_open=variant_picker.open_settings,
        opens=variant_picker.PLACE,
        diverging=found.difference,
        ceiling=found.most_of_reference,
        ceiling_name=_("ends at softmax's largest"),
        unit=found.unit,
    )


def _redraw(view: View, n: int, key: str, *, difference: bool) -> Panel | None:
    """One panel with the settings that its variant has now, on what the board shows; None where it has been removed."""
    attention = next((each for each in Visit.variants.value if each.key == key), None)
    if attention is None:
        return None
    with cached.drawing().turn(dispatch.visitor()):
        return _panel(attention, cached.matrix(view, attention), n, difference=difference)


def _values(compared: Compared, *, difference: bool) -> np.ndarray:
    return compared.difference if difference else compared.weights


def _panel(attention: ac.Attention, compared: Compared, n: int, *, difference: bool) -> Panel:
    budget, knob, title = attention.variant.budget, None, _(attention.title)
    others = [setting for setting in attention.variant.params.settings() if setting != budget]
    if budget is not None:
        now = getattr(attention.params, budget.name)
        knob = Knob(readable(budget.name), variant_picker.stops(budget, now, n), now)
    return Panel(
        attention.key,
        label(attention) if knob is None else title,
        caption(attention, compared, difference=difference, hidden=len(compared.weights) < n),
        _values(compared, difference=difference),
        knob=knob,
        settings=_("Settings of {name}", name=title) if others else "",
    )


def _pin(event: BoardEvent) -> None:
    MatricesOptions.row.set(event.pinned)


def _turn(key: str, value: object, held: bool) -> None:
    variant_picker.turn_budget(key, value)
