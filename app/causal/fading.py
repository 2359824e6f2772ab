"""Fading: what an early token still weighs in later rows, plain accumulation beside decay and softmax."""

import numpy as np
import streamlit as st

import attention_core as ac
from app import chart, compute, share, takeaway
from app.causal.cost_words import places
from app.comparison import number_repeats
from app.figures.curves import Curve, curves
from app.figures.theme import GREY
from app.input_panel import Chosen
from app.share import Field
from app.text import _, literal
from attention_core.experiments.fading import DECAYS, Faded, fade, first_share, variants
from attention_core.limits import current

STROKES = ("dash", "dot", "dashdot", "longdash", "longdashdot", "5px,2px", "2px,4px", "12px,3px")
"""Of retention at its decays, which share one colour."""
LOWEST = 1e-8
"""Where a logarithmic axis ends: a weight below one in a hundred million is gone."""

Matrices = dict[ac.Attention, np.ndarray]


def fields() -> dict[str, Field]:
    """What a link to this view carries."""
    known = {str(decay): decay for decay in DECAYS}
    return {
        "c_early": share.whole(10, 0, current().matrix_tokens - 1),
        "c_decays": Field(
            [0.8, 0.95],
            lambda given: [] if given == ["none"] else sorted({known[word] for word in given}),
            lambda decays: [str(decay) for decay in sorted(decays)] or ["none"],
        ),
        "c_map": share.choice(*_maps()),
        "c_log": share.switch(True),
    }


def _maps() -> tuple[str, ...]:
    return next(s.choices for s in ac.variant("linear").params.settings() if s.name == "feature_map")


def show(chosen: Chosen) -> None:
    """Draw the sentence, the controls, the two charts and the numbers."""
    state, n = st.session_state, chosen.qkv.n
    labels = number_repeats(chosen.qkv.tokens)
    state["c_early"] = min(state["c_early"], n - 1)
    compared = variants(sorted(state["c_decays"]), state["c_map"])
    matrices = {}
    for attention in compared:
        with st.spinner(_("Computing {name} …", name=_name(attention)), show_time=True):
            matrices[attention] = compute.causal_weights(chosen.source, chosen.head, attention.word)
    token = state["c_early"]
    faded = {attention: fade(weights, token, decay=_decay(attention)) for attention, weights in matrices.items()}
    st.markdown(_sentence(faded, matrices, labels, token))
    _controls(labels)
    left, right = st.columns(2)
    with left:
        _weights(faded, token, n)
    with right:
        _quarters(matrices, n)
    _table(faded, matrices, token)
    st.caption(
        _("Every variant is causal here.")
        + (" " + _("Weights are averages over all heads.") if chosen.head is None else "")
    )
    _explain()
    _take_away(faded, token)


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
            _("Token j, whose weight is followed"), range(len(labels)), key="c_early",
            format_func=lambda j: f"{j}  {labels[j]}",
        )  # fmt: skip
    left, right = st.columns([8, 5])
    left.pills(
        _("Decay γ of retention"), DECAYS, key="c_decays", selection_mode="multi", format_func="{:g}".format,
        help=_("What is left of a weight at each further token; 1 would be linear."),
    )  # fmt: skip
    right.segmented_control(
        _("Feature map φ"), _maps(), key="c_map", required=True, help=_("Of linear attention and retention alike."),
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.toggle(_("Logarithmic weights"), key="c_log", width="content")
        chart.choose_format()


def _sentence(faded: dict[ac.Attention, Faded], matrices: Matrices, labels: tuple[str, ...], token: int) -> str:
    n, name = len(labels), literal(labels[token])
    if n == 1:
        return _("There is one token, and it keeps all the weight. Give more of them to see it fade.")
    ends = ", ".join(
        _("**{name}** {weight}", name=_name(a), weight=percent(found.weights[-1])) for a, found in faded.items()
    )
    words = _(
        "In the last of {n} rows token {token} “{name}” still weighs: {ends}; an even share is {even}.",
        n=n, token=token, name=name, ends=ends, even=percent(1 / n),
    )  # fmt: skip
    shares = ", ".join(
        _("{name} {share}", name=_name(a), share=percent(first_share(weights[-1], _quarter(n))))
        for a, weights in matrices.items()
    )
    words += " " + _("The **first quarter of the tokens** holds of that row: {shares}.", shares=shares)
    linear = next(found for a, found in faded.items() if a.key == "linear")
    if linear.power is not None:
        words += " " + _(
            "Linear falls like the row's number to the power {power}", power=f"{linear.power:.2f}".replace("-", "−")
        )
        decays = {a: found.factor for a, found in faded.items() if a.key == "retention" and found.factor is not None}
        if decays:
            first, factor = next(iter(decays.items()))
            words += _(", {name} by a factor of {factor:.2f} per token", name=_name(first), factor=factor)
        words += "."
    return words


def percent(weight: float) -> str:
    """A weight in per cent, with two digits that count."""
    return f"{100 * weight:.2g} %" if weight >= 1e-5 else _("under 0.001 %")


def _strokes(found: list[ac.Attention]) -> dict[ac.Attention, tuple[int, str]]:
    """Each variant's colour and stroke; retention's decays share its colour."""
    colours = places(["softmax", "linear", "retention"])
    strokes = iter(STROKES)
    return {a: (colours[a.key], next(strokes) if a.key == "retention" else "solid") for a in found}


def _weights(faded: dict[ac.Attention, Faded], token: int, n: int) -> None:
    looks, log = _strokes(list(faded)), st.session_state["c_log"]
    rows = list(range(token, n))
    lines = [
        Curve(
            name=_name(a), x=rows, y=[100 * w if w > LOWEST or not log else None for w in found.weights.tolist()],
            colour=looks[a][0], dash=looks[a][1], marks=n - token < 3,
        )
        for a, found in faded.items()
    ]  # fmt: skip
    lines.append(
        Curve(name=_("even share, 1 / (i + 1)"), x=rows, y=[100 / (i + 1) for i in rows], colour=GREY, dash="dot",
              marks=n - token < 3)
    )  # fmt: skip
    figure = curves(
        lines, x_title=_("row i (query)"), y_title=_("weight on token j, %"), log_y=log, number=".2g", height=430,
    )  # fmt: skip
    chart.show(
        figure, key="causal.fading", name="fading",
        alt=_("Curves: the weight of token {token} in every later row, one per variant", token=token),
    )  # fmt: skip


def _quarters(matrices: Matrices, n: int) -> None:
    looks, quarter = _strokes(list(matrices)), _quarter(n)
    rows = list(range(quarter - 1, n))
    lines = [
        Curve(
            name=_name(a), x=rows, y=[100 * first_share(weights[i], quarter) for i in rows], colour=looks[a][0],
            dash=looks[a][1], marks=len(rows) < 3,
        )
        for a, weights in matrices.items()
    ]  # fmt: skip
    lines.append(
        Curve(name=_("even shares"), x=rows, y=[100 * quarter / (i + 1) for i in rows], colour=GREY, dash="dot",
              marks=len(rows) < 3)
    )  # fmt: skip
    title = _("weight on the first {count} tokens, %", count=quarter)
    figure = curves(lines, x_title=_("row i (query)"), y_title=title, number=".1f", height=430)
    chart.show(
        figure, key="causal.quarter", name="first-quarter",
        alt=_("Curves: the share of every row's weight on the first quarter of the tokens, one per variant"),
    )  # fmt: skip


def _table(faded: dict[ac.Attention, Faded], matrices: Matrices, token: int) -> None:
    n = len(next(iter(matrices.values())))
    own, last, start, half = _("own row, %"), _("last row, %"), _("law from row"), _("half-life")
    power, factor, quarter = _("power of i"), _("per token"), _("first ¼, %")
    shown = [
        {
            _("variant"): _name(a),
            own: f"{100 * found.weights[0]:.3g}",
            last: f"{100 * found.weights[-1]:.3g}",
            start: "—" if a.key == "softmax" or found.start >= n else str(found.start),
            half: _digits(found.half_life, 1),
            power: _digits(found.power if a.key == "linear" else None, 2),
            factor: _digits(found.factor, 3),
            quarter: 100 * first_share(matrices[a][-1], _quarter(n)),
        }
        for a, found in faded.items()
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
                    "The fit begins at this row: 2j + 1, or 1 / (1 − γ) with a decay. Before, the first "
                    "tokens to come rule the sum that weights are divided by."
                )
            ),
            half: text(help=_("With decay, tokens until half of the weight is left, by the fitted factor.")),
            power: text(help=_("Of linear, the weight's fitted fall: (i + 1) to this power; −1 is an even share.")),
            factor: text(help=_("With decay, what is left of the weight at each further token, fitted.")),
            quarter: number(format="%.1f", help=_("The first quarter of the tokens in the last row.")),
        },
    )


def _digits(value: float | None, digits: int) -> str:
    return "—" if value is None else f"{value:.{digits}f}".replace("-", "−")


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
                "- **Softmax** can come back to an early token whenever a query matches its key.\n"
                "- Weights are worked out in float64; a logarithmic axis ends at a hundred-millionth."
            )
        )


def _take_away(faded: dict[ac.Attention, Faded], token: int) -> None:
    with st.expander(_("Take away"), icon=":material/download:"):
        takeaway.download(
            _("Numbers (CSV)"),
            lambda: takeaway.to_csv(
                (_("variant"), "j", "i", _("weight")),
                [[a.word, token, token + i, w] for a, f in faded.items() for i, w in enumerate(f.weights.tolist())],
            ),
            "fading.csv", "text/csv", "causal.fading.csv",
        )  # fmt: skip
        takeaway.snippet(
            "import attention_core as ac\nfrom attention_core.experiments.fading import causal_weights, fade\n\n"
            'qkv = ac.inputs.from_text("The cat sat on the mat.", layer=2)\n'
            'weights = causal_weights(qkv, ac.get("retention", decay=0.8), head=3)\n'
            "print(fade(weights, 1, decay=0.8))\n"
        )
