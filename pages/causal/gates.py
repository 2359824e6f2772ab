"""The gate of linear attention in the Forgetting chapter of Causal: for each token, how much of the past is kept.

This module has the options of the gate, the names of the kinds of gates, and their chart.
"""

import numpy as np
import streamlit as st

from app.figures.lines.curves import Curve, guide
from app.figures.theme import escape_label
from app.state.controls import Options, choice, integer, stops
from app.words.i18n import N_, _, escape_markdown, paragraph
from attention_core.analysis.state.gating import Gate, Gated
from attention_core.analysis.state.token_weight import DECAYS
from pages.causal.fading_words import percent
from pages.causal.shared import show_lines

COLOUR_VARIANT = "fox"
"""Variant whose colour the gate has: the forgetting transformer, which also has a gate per token."""
NO_GATE, RANDOM = "none", "drawn"
GATES = {"surprise": N_("by key novelty"), RANDOM: N_("random")}
"""Names of the kinds of gates within a sentence."""
MAX_FITTED_MEAN = 1 - 1e-9
"""Largest mean that is fitted as a decay; beyond it the fit would begin after the last row."""


class GateOptions(Options, prefix="c_"):
    """The options of the gate that a link carries."""

    gate = choice(
        {"surprise": N_("By key novelty"), RANDOM: N_("Random"), NO_GATE: N_("None")},
        N_("Untrained gate γₜ"),
        help=N_(
            "“By key novelty”: the state decays faster when a key differs more from the mean of earlier keys. "
            "“Random”: the gate is a sigmoid of the key's component along a random direction."
        ),
    )
    gate_decay = stops(
        DECAYS,
        0.8,
        N_("Gate γ"),
        template="{:g}",
        help=N_(
            "Share of the state that is kept at a token whose key is orthogonal to a reference direction. For the "
            "gate “by key novelty”, this direction is the mean of the earlier keys. For the gate “random”, it is a "
            "random direction."
        ),
    )
    gate_seed = integer(0, 0, 99, N_("Seed"), layout={"width": 110})


def selected_gate() -> Gate | None:
    """Return the chosen gate; None for no gate."""
    options = GateOptions.current()
    if options.gate == NO_GATE:
        return None
    # The seed affects only the gate with random weights. The other kind always gets the seed 0, so that its result is
    # cached once, not once per seed.
    return Gate(kind=options.gate, decay=options.gate_decay, seed=options.gate_seed if options.gate == RANDOM else 0)


def gate_name(gate: Gate) -> str:
    """Return the name of a gate on screen."""
    return _("Gate {kind}", kind=_(GATES[gate.kind]))


def meaning(gate: Gate) -> str:
    """Return what sets γ at each token with a gate."""
    if gate.kind == RANDOM:
        return _(
            "A gate sets γ, the share of the state that is kept, at each token. Here, γ depends on the key's "
            "component along a random direction."
        )
    return _(
        "A gate sets γ, the share of the state that is kept, at each token. The more a key differs from the "
        "mean of earlier keys, the smaller γ is."
    )


def fixed_decay_name(gated: Gated) -> str:
    """Return the name on screen of the fixed decay that forgets as much as a gate."""
    return _("Mean gate γ: {mean:.3g}", mean=gated.mean)


def gate_word(gate: Gate) -> str:
    """Return the name of a gate in files."""
    return f"gate~{gate.kind}~decay~{gate.decay:g}" + (f"~seed~{gate.seed}" if gate.kind == RANDOM else "")


def fixed_decay_word(gate: Gate) -> str:
    """Return the name in files of the fixed decay that forgets as much as a gate."""
    return f"{gate_word(gate)}~even"


def show_controls() -> None:
    """Draw the options of the gate: its kind, the decay of a neutral key, and the seed of a drawn gate."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kind = GateOptions.gate.draw()
        if kind != NO_GATE:
            GateOptions.gate_decay.draw(width=260)
        if kind == RANDOM:
            GateOptions.gate_seed.draw()


def summary(gated: Gated, gate: Gate, token: int, labels: tuple[str, ...]) -> str:
    """Return how much the gates keep, where they forget most, and the weight of the token in the last row.

    Args:
        gated: the computed gate, on at least two tokens.
        gate: settings of the gate.
        token: index of the followed token.
        labels: labels of the tokens.
    """
    gates, lowest = gated.gates[1:], int(np.argmin(gated.gates[1:])) + 1
    kind = _(GATES[gate.kind])
    if np.ptp(gates) < 1e-6:
        message = _(
            "The untrained **gate** ({kind}) keeps {share:.1%} of the state at every token, so it acts "
            "as a fixed decay.",
            kind=kind,
            share=gates.mean(),
        )
    else:
        message = paragraph(
            _(
                "At each token, the untrained **gate** ({kind}) keeps {low:.1%} to {high:.1%} of the state. It "
                "keeps the smallest share at token {least} “{name}”.",
                kind=kind,
                low=gates.min(),
                high=gates.max(),
                least=lowest,
                name=escape_markdown(labels[lowest]),
            ),
            _("On average, the state decays as quickly as with a fixed γ of {mean:.3g}.", mean=gated.mean),
        )
    last = _(
        "With the gate, token {token} gets {gated} of the weight of the last row. If all gates γₜ are replaced by "
        "one constant γ with the same average decay, the token gets {even}.",
        token=token,
        gated=percent(gated.weights[-1, token]),
        even=percent(gated.even[-1, token]),
    )
    return paragraph(message, last)


def draw(gated: Gated, token: int, labels: tuple[str, ...], *, colour: int) -> None:
    """Draw the chart of the gates over the tokens."""
    positions = list(range(1, len(labels)))
    notes = [f"{t} “{escape_label(labels[t])}”: γ {gated.gates[t]:.3f}" for t in positions]
    lines = [
        Curve(
            _("gate γₜ"), positions, gated.gates[1:].tolist(), colour=colour, notes=notes, markers=len(positions) < 100
        ),
        guide(fixed_decay_name(gated), positions, [gated.mean] * len(positions), "dash"),
    ]
    text = _("Curve: the share of the state that each token's gate keeps")
    axes = {
        "x_title": _("token t"),
        "y_title": _("share of the state kept"),
        "mark": (token, _("selected token")),
        "height": 260,
        "form": ".3f",
    }
    show_lines(lines, key="causal.gates", name="gates", alt=text, **axes)


def snippet(gate: Gate, feature_map: str, head: int | None) -> str:
    """Return Python code that computes the gate again, to append to the code that loads ``qkv``."""
    return (
        "from attention_core.analysis.state.gating import Gate, gated\n\n"
        f"found = gated(qkv, {gate!r}, {feature_map!r}, head={head})\n"
        "print(found.gates, found.mean, found.weights[-1, 1], found.even[-1, 1])\n"
    )
