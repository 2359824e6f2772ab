"""The Forgetting chapter of the Causal page: how much attention weight later tokens still give to an early token.

It compares softmax attention with linear attention, without decay and with a constant decay.
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.lines.curve import Curve
from app.figures.theme import GREY
from app.jobs import cached
from app.state.controls import Options, choice, int_choice, multiselect, switch
from app.ui import export, input_panel, palette
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_popover
from app.ui.scope import Scope
from app.words.i18n import N_, _, escape_markdown
from app.words.labels import setting_name, spinner, token_options
from attention_core.analysis.state.token_weight import DECAYS, variants
from attention_core.formatting import format_readable
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from pages.causal.fading_words import Line, summary
from pages.causal.shared import export_panel, show_lines

DASHES = ("dash", "dashdot", "longdash", "longdashdot", "5px,2px", "2px,4px", "12px,3px", "dot")
"""Dash patterns that distinguish the decays of retention, which share one colour.

The dotted pattern is the last one, because the line of equal weights is dotted too."""
HEIGHT = 380
MIN_WEIGHT = 1e-6
"""Lower end of a logarithmic weight axis; smaller weights are not drawn."""


def feature_maps() -> dict[str, str]:
    """Return the feature maps of linear attention with their names on screen."""
    choices = next(s.choices for s in ac.variant("linear").params.settings() if s.name == "feature_map")
    return {name: setting_name(name) for name in choices}


class FadingOptions(Options, prefix="c_"):
    """The options that a link to this view carries."""

    early = int_choice(10, 0, lambda: current().matrix_tokens - 1, N_("Token j to follow"), widget=st.select_slider)
    decays = multiselect(
        DECAYS,
        [0.8, 0.95],
        N_("Retention γ"),
        help=N_(
            "Share of a token's weight that remains after each later token. A share of 1 would give linear attention."
        ),
    )
    feature_map = choice(
        feature_maps, N_("Feature map φ"), link="c_map", help=N_("Feature map of linear attention and of retention.")
    )
    log = switch(True, N_("Logarithmic axis"))


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the chapter on forgetting: its finding, the controls, the chart and the downloads."""
    n, labels = chosen.qkv.n, number_repeats(chosen.qkv.names)
    FadingOptions.early.set(min(FadingOptions.early.value, n - 1))
    options = FadingOptions.current()
    token = options.early
    lines = _lines(chosen, options)
    finding = summary(lines, token, labels)
    headline.markdown(finding.text)
    _show_controls(labels)
    name = escape_markdown(labels[token])
    st.markdown("## " + _("Weight of token {token} “{name}” in later rows", token=token, name=name), anchors=False)
    _show_weights(lines, token, log=options.log)
    st.caption(
        _(
            "The state is the sum of the products of keys and values. At each new token, Retention keeps the share γ "
            "of its state, and Linear keeps all of it."
        )
    )
    if finding.explanation:
        st.markdown(finding.explanation)
    if chosen.head is None:
        st.caption(_("Weights are averaged over all heads."))
    _explain()
    _export(lines, token, chosen)


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view: the chosen head or the heads' average, and the variants whose curves are drawn."""
    options = FadingOptions.current()
    words = [attention.word for attention in variants(sorted(options.decays), options.feature_map)]
    return replace(input_panel.scope(chosen), variants=tuple(words))


def _lines(chosen: ChosenInput, options: FadingOptions) -> list[Line]:
    """Return the lines of softmax, linear attention and retention at each chosen decay."""
    dashes, lines = iter(DASHES), []
    for attention in variants(sorted(options.decays), options.feature_map):
        with spinner(_name(attention)):
            weights = cached.causal_weights(chosen.source, attention, head=chosen.head)
        lines.append(
            Line(
                name=_name(attention),
                word=attention.word,
                weights=weights,
                token_weights=weights[options.early :, options.early],
                law={"linear": "power", "retention": "factor"}.get(attention.key, ""),
                colour=palette.index(attention.key),
                dash=next(dashes) if attention.key == "retention" else "solid",
            )
        )
    return lines


def _decay(attention: ac.Attention) -> float | None:
    return getattr(attention.params, "decay", None)


def _name(attention: ac.Attention) -> str:
    if (decay := _decay(attention)) is not None:
        return _("{name} · γ {decay:g}", name=_(attention.title), decay=decay)
    return _(attention.title)


def _show_controls(labels: tuple[str, ...]) -> None:
    left, right = st.columns([8, 2], vertical_alignment="bottom")
    with left:
        if len(labels) > 1:
            FadingOptions.early.draw(**token_options(labels))
    with right:
        lazy_popover(_("Curves"), _show_curve_options, key="causal.curves", icon=":material/tune:", type="tertiary")


def _show_curve_options() -> None:
    FadingOptions.decays.draw(format_func="{:g}".format)
    FadingOptions.feature_map.draw()
    FadingOptions.log.draw(width="content")


def _show_weights(lines: Sequence[Line], token: int, *, log: bool) -> None:
    rows = range(token, len(lines[0].weights))
    weights = [[100 * w if w > MIN_WEIGHT or not log else None for w in line.token_weights.tolist()] for line in lines]
    marks = len(rows) < 3
    curves_ = [
        *(
            Curve(line.name, rows, y, colour=line.colour, dash=line.dash, markers=marks, name_index=_last_drawn(y))
            for line, y in zip(lines, weights, strict=True)
        ),
        Curve(_("equal weights"), rows, [100 / (i + 1) for i in rows], colour=GREY, dash="dot", markers=marks),
    ]
    title = _("weight of token {token}, %", token=token)
    text = _("Curves: the weight of token {token} in every later row, with one curve per variant", token=token)
    ticks = {10.0**power: f"{10.0**power:g}" for power in range(-4, 3)} if log else None
    axes = {
        "x_title": _("row (query)"),
        "y_title": title,
        "log_y": log,
        "form": ".2g",
        "height": HEIGHT,
        "y_ticks": ticks,
    }
    show_lines(curves_, key="causal.fading", name="fading", alt=text, **axes)


def _last_drawn(y: Sequence[float | None]) -> int | None:
    """Return the index of the last point of a line that leaves the chart before its end; None for other lines."""
    return max((i for i, each in enumerate(y) if each is not None), default=None) if y[-1] is None else None


def _explain() -> None:
    export.draw_formula(
        _("Formulas"),
        r"A_{ij} = \frac{\varphi(q_i)^\top \varphi(k_j)}{\sum_{l \le i} \varphi(q_i)^\top \varphi(k_l)}"
        r"\;\sim\; \frac{1}{i + 1}\qquad\text{but}\qquad A_{ij} = \frac{\gamma^{i-j}\, \varphi(q_i)^\top "
        r"\varphi(k_j)}{\sum_{l \le i} \gamma^{i-l}\, \varphi(q_i)^\top \varphi(k_l)}"
        r"\;\sim\; (1-\gamma)\,\gamma^{i-j}",
        _(
            "- **Linear** attention adds every token to one sum, the state. Each new token therefore dilutes all "
            "earlier tokens equally. In row i, the average weight is 1 / (i + 1).\n"
            "- With a **decay**, a token's weight is multiplied by γ at each later token. Half of it remains after "
            "log 2 / log (1 / γ) tokens. The state then covers about the last 1 / (1 − γ) tokens.\n"
            "- With a **gate**, every token has its own γ. In row i, the weight of token j has been multiplied by the "
            "γ of each token from j + 1 to i.\n"
            "- With **softmax**, an early token can receive a large weight again whenever a query matches its key.\n"
            "- Weights are computed in float64. On the logarithmic axis, weights below {least}% are not drawn.",
            least=format_readable(100 * MIN_WEIGHT, None),
        ),
        key="causal.method",
    )


def _export(lines: Sequence[Line], token: int, chosen: ChosenInput) -> None:
    options = FadingOptions.current()
    variant_words = [attention.word for attention in variants(sorted(options.decays), options.feature_map)]
    # ``tolist`` copies the weights. One column as an array would be a view that keeps all [n, n] weights in memory.
    weights_by_word = [(line.word, line.token_weights.tolist()) for line in lines]
    header = (_("variant"), "j", "i", _("weight"))

    def rows() -> list[list[object]]:
        return [[word, token, token + i, w] for word, weights in weights_by_word for i, w in enumerate(weights)]

    export_panel(
        [(_("Numbers (CSV)"), lambda: export.to_csv(header, rows()), "fading.csv")],
        "import attention_core as ac\n"
        "from attention_core.analysis.state.token_weight import causal_weights\n\n"
        f"qkv = {chosen.source.code}.load()\n"
        f"for word in {variant_words!r}:\n"
        f"    weights = causal_weights(qkv, ac.from_word(word), head={chosen.head})\n"
        f"    print(word, weights[{token}:, {token}])\n",
    )
