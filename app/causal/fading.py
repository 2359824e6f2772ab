"""Fading: what an early token still weighs in later rows, plain accumulation beside decay, a gate and softmax."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

import attention_core as ac
from app import chart, compute, share, takeaway
from app.causal import gates
from app.causal.cost_words import places
from app.figures.curves import Curve, curves
from app.figures.theme import GREY
from app.input_panel import Chosen
from app.share import Field
from app.text import _, literal, paragraph
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from attention_core.looks.gating import Gate, Gated
from attention_core.looks.token_weight import DECAYS, Faded, fade, first_share, variants
from attention_core.writing import formatted

STROKES = ("dash", "dot", "dashdot", "longdash", "longdashdot", "5px,2px", "2px,4px", "12px,3px")
"""Of retention at its decays, which share one colour."""
LOWEST = 1e-8
"""Where a logarithmic axis ends: a weight below one in a hundred million is gone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """One attention whose weights are followed.

    Attributes:
        name: on screen.
        word: in files.
        weights: its causal matrix, ``[n, n]``.
        found: how the followed token's weight goes on.
        law: how that is told: ``"power"`` of the row's number, ``"factor"`` per token, or not at all.
        colour: its colour's place.
        dash: its stroke.
    """

    name: str
    word: str
    weights: np.ndarray
    found: Faded
    law: str
    colour: int
    dash: str


def fields() -> dict[str, Field]:
    """What a link to this view carries."""
    return {
        "c_early": share.whole(10, 0, current().matrix_tokens - 1),
        "c_decays": share.some_of([0.8, 0.95], DECAYS),
        "c_map": share.choice(*_maps()),
        "c_log": share.switch(True),
    } | gates.fields()


def _maps() -> tuple[str, ...]:
    return next(s.choices for s in ac.variant("linear").params.settings() if s.name == "feature_map")


def show(chosen: Chosen) -> None:
    """Draw the sentence, the controls, the two charts and the numbers."""
    state, n = st.session_state, chosen.qkv.n
    labels = number_repeats(chosen.qkv.tokens)
    state["c_early"] = min(state["c_early"], n - 1)
    token, gate = state["c_early"], gates.chosen()
    lines = _lines(chosen)
    if gate is not None:
        with st.spinner(_("Computing {name} …", name=gates.name(gate)), show_time=True):
            gated = compute.gated(chosen.source, gate, state["c_map"], head=chosen.head)
        lines += _gated_lines(gate, gated)
    st.markdown(_sentence(lines, labels, token))
    if gate is not None and n > 1:
        st.markdown(gates.sentence(gated, gate, token, labels))
    _controls(labels)
    left, right = st.columns(2)
    with left:
        _weights(lines, token, n)
    with right:
        _quarters(lines, n)
    if gate is not None and n > 1:
        gates.draw(gated, token, labels, colour=lines[-1].colour)
    _table(lines)
    st.caption(
        _("Every variant is causal here.")
        + (" " + _("Weights are averages over all heads.") if chosen.head is None else "")
    )
    _explain()
    _take_away(lines, token, gate)


def _colours() -> dict[str, int]:
    return places(["softmax", "linear", "retention", gates.KEY])


def _lines(chosen: Chosen) -> list[Line]:
    """Softmax, linear, and retention at each decay."""
    state, strokes, lines = st.session_state, iter(STROKES), []
    for attention in variants(sorted(state["c_decays"]), state["c_map"]):
        with st.spinner(_("Computing {name} …", name=_name(attention)), show_time=True):
            weights = compute.causal_weights(chosen.source, attention, head=chosen.head)
        lines.append(
            Line(
                name=_name(attention),
                word=attention.word,
                weights=weights,
                found=fade(weights, state["c_early"], decay=_decay(attention)),
                law={"linear": "power", "retention": "factor"}.get(attention.key, ""),
                colour=_colours()[attention.key],
                dash=next(strokes) if attention.key == "retention" else "solid",
            )
        )
    return lines


def _gated_lines(gate: Gate, gated: Gated) -> list[Line]:
    """The gate, and the fixed decay that forgets as much."""
    return [
        Line(
            name=name,
            word=word,
            weights=weights,
            law="factor",
            colour=_colours()[gates.KEY],
            dash=dash,
            found=fade(weights, st.session_state["c_early"], decay=min(gated.mean, gates.MOST)),
        )
        for name, word, weights, dash in (
            (gates.name(gate), gates.word(gate), gated.weights, "solid"),
            (gates.even_name(gated), f"{gates.word(gate)}~even", gated.even, "dot"),
        )
    ]


def _decay(attention: ac.Attention) -> float | None:
    return getattr(attention.params, "decay", None)


def _name(attention: ac.Attention) -> str:
    if (decay := _decay(attention)) is not None:
        return _("{name}, γ = {decay:g}", name=_(attention.title), decay=decay)
    return _(attention.title)


def _quarter(n: int) -> int:
    return max(1, n // 4)


def _controls(labels: tuple[str, ...]) -> None:
    if len(labels) > 1:
        st.select_slider(
            _("Token j, whose weight is followed"),
            range(len(labels)),
            key="c_early",
            format_func=lambda j: f"{j}  {labels[j]}",
        )
    left, right = st.columns([8, 5])
    left.pills(
        _("Decay γ of retention"),
        DECAYS,
        key="c_decays",
        selection_mode="multi",
        format_func="{:g}".format,
        help=_("What is left of a weight at each further token; 1 would be linear."),
    )
    right.segmented_control(
        _("Feature map φ"),
        _maps(),
        format_func=_,
        key="c_map",
        required=True,
        help=_("Of linear attention and retention alike."),
    )
    gates.controls()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.toggle(_("Logarithmic weights"), key="c_log", width="content")
        chart.choose_format()


def _sentence(lines: Sequence[Line], labels: tuple[str, ...], token: int) -> str:
    n, name = len(labels), literal(labels[token])
    if n == 1:
        return _("There is one token, and it keeps all the weight. Give more of them to see it fade.")
    ends = ", ".join(_("**{name}** {weight}", name=line.name, weight=percent(line.found.weights[-1])) for line in lines)
    words = _(
        "In the last of {n} rows token {token} “{name}” still weighs: {ends}; an even share is {even}.",
        n=n,
        token=token,
        name=name,
        ends=ends,
        even=percent(1 / n),
    )
    shares = ", ".join(
        _("{name} {share}", name=line.name, share=percent(first_share(line.weights[-1], _quarter(n)))) for line in lines
    )
    words = paragraph(words, _("The **first quarter of the tokens** holds of that row: {shares}.", shares=shares))
    power = next(line.found.power for line in lines if line.law == "power")
    if power is not None:
        words = paragraph(
            words, _("Linear falls like the row's number to the power {power}", power=formatted(power, ".2f"))
        )
        first = next((line for line in lines if line.law == "factor" and line.found.factor is not None), None)
        if first is not None:
            words += _(", {name} by a factor of {factor:.2f} per token", name=first.name, factor=first.found.factor)
        words += "."
    return words


def percent(weight: float) -> str:
    """A weight in per cent, with two digits that count."""
    return f"{100 * weight:.2g} %" if weight >= 1e-5 else _("under 0.001 %")


def _weights(lines: Sequence[Line], token: int, n: int) -> None:
    log = st.session_state["c_log"]
    rows = list(range(token, n))
    drawn = [
        Curve(
            name=line.name,
            x=rows,
            y=[100 * w if w > LOWEST or not log else None for w in line.found.weights.tolist()],
            colour=line.colour,
            dash=line.dash,
            marks=n - token < 3,
        )
        for line in lines
    ]
    drawn.append(
        Curve(
            name=_("even share, 1 / (i + 1)"),
            x=rows,
            y=[100 / (i + 1) for i in rows],
            colour=GREY,
            dash="dot",
            marks=n - token < 3,
        )
    )
    figure = curves(
        drawn, x_title=_("row i (query)"), y_title=_("weight on token j, %"), log_y=log, number=".2g", height=430
    )
    chart.show(
        figure,
        key="causal.fading",
        name="fading",
        alt=_("Curves: the weight of token {token} in every later row, one per variant", token=token),
    )


def _quarters(lines: Sequence[Line], n: int) -> None:
    quarter = _quarter(n)
    rows = list(range(quarter - 1, n))
    drawn = [
        Curve(
            name=line.name,
            x=rows,
            y=[100 * first_share(line.weights[i], quarter) for i in rows],
            colour=line.colour,
            dash=line.dash,
            marks=len(rows) < 3,
        )
        for line in lines
    ]
    drawn.append(
        Curve(
            name=_("even shares"),
            x=rows,
            y=[100 * quarter / (i + 1) for i in rows],
            colour=GREY,
            dash="dot",
            marks=len(rows) < 3,
        )
    )
    title = _("weight on the first {count} tokens, %", count=quarter)
    figure = curves(drawn, x_title=_("row i (query)"), y_title=title, number=".1f", height=430)
    chart.show(
        figure,
        key="causal.quarter",
        name="first-quarter",
        alt=_("Curves: the share of every row's weight on the first quarter of the tokens, one per variant"),
    )


def _table(lines: Sequence[Line]) -> None:
    n = len(lines[0].weights)
    own, last, start, half = _("own row, %"), _("last row, %"), _("law from row"), _("half-life")
    power, factor, quarter = _("power of i"), _("per token"), _("first ¼, %")
    shown = [
        {
            _("variant"): line.name,
            own: f"{100 * line.found.weights[0]:.3g}",
            last: f"{100 * line.found.weights[-1]:.3g}",
            start: "—" if not line.law or line.found.start >= n else str(line.found.start),
            half: _digits(line.found.half_life, 1),
            power: _digits(line.found.power if line.law == "power" else None, 2),
            factor: _digits(line.found.factor, 3),
            quarter: 100 * first_share(line.weights[-1], _quarter(n)),
        }
        for line in lines
    ]
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    st.dataframe(
        shown,
        hide_index=True,
        column_config={
            own: text(help=_("Weight of token j in row j.")),
            last: text(help=_("Weight of token j in the last row.")),
            start: text(
                help=_(
                    "The fit begins at this row: 2j + 1, or 1 / (1 − γ) with a decay, of a gate its mean. Before, the "
                    "first tokens to come rule the sum that weights are divided by."
                )
            ),
            half: text(
                help=_("With a decay or a gate, tokens until half of the weight is left, by the fitted factor.")
            ),
            power: text(help=_("Of linear, the weight's fitted fall: (i + 1) to this power; −1 is an even share.")),
            factor: text(help=_("With a decay or a gate, what is left of the weight at each further token, fitted.")),
            quarter: number(format="%.1f", help=_("The first quarter of the tokens in the last row.")),
        },
    )


def _digits(value: float | None, digits: int) -> str:
    return "—" if value is None else formatted(value, f".{digits}f")


def _explain() -> None:
    with st.expander(_("Why"), icon=":material/function:"):
        st.latex(
            r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_{l \le i} \varphi(q_i)^\top \varphi(k_l)}"
            r"\;\sim\; \frac{1}{i + 1}\qquad\text{but}\qquad A_{ij} = \frac{\gamma^{i-j}\, \varphi(q_i)^\top "
            r"\varphi(k_j)}{\sum_{l \le i} \gamma^{i-l}\, \varphi(q_i)^\top \varphi(k_l)}"
            r"\;\sim\; (1-\gamma)\,\gamma^{i-j}"
        )
        st.markdown(
            _(
                "- **Linear** attention adds every token to one sum and never lets one go, so each new one thins all "
                "the old ones alike: late tokens drown early ones, like 1 / i.\n"
                "- With a **decay** a token fades by γ at every step whatever comes after it; half is gone after "
                "log 2 / log (1 / γ) tokens. What is kept is recent: about 1 / (1 − γ) tokens.\n"
                "- With a **gate** γ differs from token to token: what came at j has passed the gates of j + 1 to i. "
                "Between two tokens that forget it is kept, and one token can make all before it fade at once.\n"
                "- **Softmax** can come back to an early token whenever a query matches its key.\n"
                "- Weights are worked out in float64; a logarithmic axis ends at a hundred-millionth."
            )
        )


def _take_away(lines: Sequence[Line], token: int, gate: Gate | None) -> None:
    with st.expander(_("Take away"), icon=":material/download:"):
        takeaway.download(
            _("Numbers (CSV)"),
            lambda: takeaway.to_csv(
                (_("variant"), "j", "i", _("weight")),
                [[a.word, token, token + i, w] for a in lines for i, w in enumerate(a.found.weights.tolist())],
            ),
            "fading.csv",
            "text/csv",
            "causal.fading.csv",
        )
        takeaway.snippet(
            "import attention_core as ac\nfrom attention_core.looks.token_weight import causal_weights, fade\n\n"
            'qkv = ac.inputs.from_text("The cat sat on the mat.", layer=2)\n'
            'weights = causal_weights(qkv, ac.get("retention", decay=0.8), head=3)\n'
            "print(fade(weights, 1, decay=0.8))\n"
            + ("" if gate is None else gates.snippet(gate, st.session_state["c_map"]))
        )
