"""Squared ReLU, explained step by step on the Inside page.

The steps show logits, their squares, normalisers, and the gated attention unit that squared ReLU comes from.
"""

import numpy as np
import streamlit as st

from app.jobs import cached
from app.words.i18n import N_, _, _n, paragraph
from app.words.isolation import isolate
from attention_core.analysis.state.gau import EXPANSION, UnitAnalysis, shared_size
from attention_core.experiments.homogeneity import FACTORS
from attention_core.formatting import number
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step

SHUT_GATE = 0.1
"""Gates smaller than this count as shut."""
MIN_SHOWN_SHARE = 0.005
"""Shares below this are printed as 0%."""
DIVISORS = {"length": "n_i", "squared": "n_i^2", "fixed": "n_0", "sum": r"\sum_l \operatorname{relu}^2(\cdot)"}


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: logits, squares, normalisers, logit factor, one matrix, gate, reference."""
    sums = data.weights.sum(-1)
    ending = _("The row sums range from {low:.2g} to {high:.2g}.", low=sums.min(), high=sums.max())
    return (
        _logits(data),
        _squares(data),
        _normalisers(data),
        _factor(data),
        _one_matrix(data),
        _gate(data),
        compare_with_reference(data, ending),
    )


def _logits(data: HeadData) -> Step:
    logits = data.parts["logits"]
    visible = logits[data.visible]

    def draw(key: str) -> None:
        shown = pictures.pair_panel(data, _("Logits x"), logits, mark=0)
        pictures.board(key, shown, *pictures.result_panels(data), scale="panel")

    return Step(
        title=_("Logits"),
        mechanism=_("As in softmax, the logit of a query and a key is their scaled dot product."),
        formula=symbol(0, "x") + r"_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
        shapes={"x": logits.shape},
        findings=_(
            "Logits range from {low} to {high}, and {share:.0%} of the logits are negative. Pairs with a negative "
            "logit get some weight in softmax, but none with squared ReLU.",
            low=number(visible.min()),
            high=number(visible.max()),
            share=(visible < 0).mean(),
        ),
        draw=draw,
    )


def _squares(data: HeadData) -> Step:
    squares, allowed = data.parts["squares"], data.visible
    kept_keys = (squares > 0).sum(-1)

    def draw(key: str) -> None:
        pictures.board(key, pictures.pair_panel(data, _("Squares s"), squares, mark=1), unit=_("squared logit"))

    return Step(
        title=_("Squares"),
        mechanism=_("Negative logits are set to zero, and positive logits are squared."),
        formula=symbol(1, "s") + r"_{ij} = \operatorname{relu}(" + symbol(0, "x") + "_{ij})^2",
        shapes={"s": squares.shape},
        findings=zeros_sentence((squares[allowed] == 0).mean(), kept_keys),
        draw=draw,
    )


def zeros_sentence(share: float, kept_keys: np.ndarray) -> str:
    """Return the sentence about the share of weights that are zero.

    Args:
        share: the share of zero weights.
        kept_keys: the number of keys with a positive weight for each query, ``[n]``.
    """
    text = _(
        "{share:.0%} of the squares are exactly zero. A typical query gives weight to {kept:.0f} of {keys} keys "
        "(median over queries).",
        share=share,
        kept=np.median(kept_keys),
        keys=len(kept_keys),
    )
    empty = int((kept_keys == 0).sum())
    if not empty:
        return paragraph(text, _("Every query gives weight to at least one key."))
    return paragraph(
        text, _n("{n} query gives no weight to any key.", "{n} queries give no weight to any key.", n=empty)
    )


def _normalisers(data: HeadData) -> Step:
    names = {
        "length": _("number of keys n"),
        "squared": _("squared number of keys n²"),
        "fixed": _("fixed number n₀"),
        "sum": _("row sum"),
    }
    current = data.setting("normalizer")
    sums, divisor = data.parts["sum"], data.parts[current]
    positions = range(len(sums))

    def draw(key: str) -> None:
        lines = [
            Curve(
                title,
                positions,
                data.parts[name].tolist(),
                colour=i,
                dash="solid" if name == current else "dash",
                markers=False,
                notes=_notes(data, data.parts[name]),
            )
            for i, (name, title) in enumerate(names.items())
        ]
        pictures.lines(
            lines,
            key=key,
            x_title=_("query"),
            y_title=_("divisor of the row"),
            log_y=True,
            alt=_(
                "Lines: the four possible divisors of every row: its number of keys n, n², a fixed number and the "
                "row sum"
            ),
        )

    return Step(
        title=_("Normalisers"),
        mechanism=_("Each row is divided by a normaliser Z. Unlike in softmax, Z can differ from the sum of the row."),
        formula="A_{ij} = " + rf"\frac{{{symbol(1, 's')}_{{ij}}}}{{Z_i}},\qquad "
        r"Z_i = n_i,\quad n_i^2,\quad n_0 \quad\text{or}\quad \textstyle\sum_l s_{il}",
        shapes={"Z": divisor.shape},
        findings=_(
            "After division by the {own}, the median of the row sums is **{total:.2g}**.",
            own=names[current],
            total=np.median(data.weights.sum(-1)),
        ),
        details=_(
            "Before the division, the row sums range from {low:.3g} to {high:.3g}, with a median of {middle:.3g}. "
            "Two of the possible divisors are n, the number of keys in a row (at most {n}), and the fixed number n₀ "
            "({base:.0f}).",
            low=sums.min(),
            high=sums.max(),
            middle=np.median(sums),
            n=len(sums),
            base=data.parts["fixed"][0],
        ),
        draw=draw,
    )


def _notes(data: HeadData, values: np.ndarray) -> list[str]:
    return [
        f"{i} “{isolate(label)}”: {number(z, 3)}"
        for i, (label, z) in enumerate(zip(data.labels, values.tolist(), strict=True))
    ]


def _factor(data: HeadData) -> Step:
    names = (_("softmax"), _("divided by the row sum"), _("divided by the number of keys n"))
    squares, sums = data.parts["squares"], data.parts["sum"][:, None]
    largest = float((squares / data.parts["length"][:, None]).max())
    most_of_sum = float((squares / np.where(sums > 0, sums, 1.0)).max())
    heights = (
        [_top(data, factor) for factor in FACTORS],
        [most_of_sum] * len(FACTORS),
        [largest * factor**2 for factor in FACTORS],
    )

    def draw(key: str) -> None:
        pictures.lines(
            [
                Curve(title, FACTORS, ys, colour=i, dash="dash" if i == 2 else "solid")
                for i, (title, ys) in enumerate(zip(names, heights, strict=True))
            ],
            key=f"{key}.largest",
            x_title=_("factor λ on every logit"),
            y_title=_("largest weight"),
            log_x=True,
            log_y=True,
            x_ticks=FACTORS,
            height=400,
            alt=_(
                "Lines: the largest weight of softmax and of squared ReLU against the factor λ that multiplies "
                "every logit"
            ),
        )

    return Step(
        title=_("Logit scale"),
        mechanism=_(
            "If all logits are multiplied by λ, all squares are multiplied by λ². This factor cancels "
            "if each row is divided by its sum."
        ),
        formula=r"\frac{\operatorname{relu}(\lambda x_{ij})^2}{\sum_l \operatorname{relu}(\lambda x_{il})^2} = "
        r"\frac{\lambda^2 s_{ij}}{\lambda^2 \sum_l s_{il}}",
        shapes={"A": data.weights.shape},
        findings=_(
            "If the rows of squared ReLU are divided by the number of keys n, doubling all logits raises the largest "
            "weight from {one} to {four}. If the rows are divided by their sums, doubling all logits changes no "
            "weight, so no temperature can sharpen the weights.",
            one=number(largest, 3),
            four=number(4 * largest, 3),
        ),
        draw=draw,
    )


def _top(data: HeadData, factor: float) -> float:
    """Return the largest weight of softmax if all logits are multiplied by ``factor``."""
    logits = factor * np.where(data.visible, data.parts["logits"].astype(float), -np.inf)
    return float(1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1).min())


def _unit(data: HeadData) -> UnitAnalysis:
    return cached.gau(data.source, data.attention, causal=data.causal)


def _width(data: HeadData) -> int:
    return data.qkv.heads * data.qkv.v.shape[-1]


@lazy_step(N_("One matrix (GAU)"))
def _one_matrix(data: HeadData) -> Step:
    """Build the step that shows the gated unit's single matrix next to the matrices of the heads."""
    unit, n, width, s = _unit(data), data.qkv.n, _width(data), shared_size(_width(data))
    divisor = DIVISORS[data.setting("normalizer")]

    def draw(key: str) -> None:
        own = _("head {head}, with its own q and k", head=data.head)
        pictures.board(
            key,
            pictures.pair_panel(data, _("Gated unit A"), unit.weights, _("random, untrained projections"), mark=0),
            pictures.pair_panel(data, _("Squared ReLU"), data.weights, own),
            *(
                pictures.pair_panel(data, _("Softmax"), head, _("head {head}", head=i))
                for i, head in enumerate(unit.heads)
            ),
            scale="panel",
        )
        if len(unit.heads) < data.qkv.heads:
            st.caption(_("Showing the first {shown} of {heads} heads.", shown=len(unit.heads), heads=data.qkv.heads))

    return Step(
        mechanism=_(
            "Squared ReLU comes from the gated attention unit (GAU). In this unit, all channels (components of the "
            "output) share one attention matrix, computed from a single projection of the input."
        ),
        formula=symbol(0, "A") + r" = \frac{\operatorname{relu}^2(Q K^\top / \sqrt{s})}{" + divisor + r"},\quad "
        r"Q = \gamma_q \odot Z + \beta_q,\quad K = \gamma_k \odot Z + \beta_k,\quad "
        r"Z = \operatorname{SiLU}(X W_z)",
        shapes={"X": (n, width), "Z": (n, s), "A": (n, n)},
        findings=matrix_sentence(data.qkv.heads, EXPANSION * width, unit.head_difference),
        draw=draw,
    )


def matrix_sentence(heads: int, channels: int, difference: float) -> str:
    """Return the sentence about the single matrix that all channels share.

    Args:
        heads: number of heads of the input.
        channels: number of channels.
        difference: mean share of a row's weight that differs between a head and the average of the heads.
    """
    text = _(
        "In the gated attention unit (GAU), all {channels} channels share one attention matrix. The unit is "
        "untrained. Its input X contains the normalised values of all heads.",
        channels=channels,
    )
    if heads == 1:
        return paragraph(text, _("There is only one head here, so softmax has a single attention matrix."))
    several = _(
        "Softmax has one matrix for each of the {heads} heads. On average, {apart:.0%} of a row's weight in a head "
        "would have to move to other keys to match the average of all heads.",
        heads=heads,
        apart=difference,
    )
    return paragraph(text, several)


@lazy_step(N_("Gate"))
def _gate(data: HeadData) -> Step:
    unit = _unit(data)
    (n, channels), total = unit.gate.shape, EXPANSION * _width(data)

    def draw(key: str) -> None:
        words = {"row": _("token"), "column": _("channel")}
        if channels < total:
            words["caption"] = _("first {channels} of {total} channels", channels=channels, total=total)
        gate = pictures.panel(_("Gate U"), unit.gate, data.labels, list(map(str, range(channels))), mark=1, **words)
        pictures.board(f"{key}.gate", gate, unit=_("gate"), diverging=True, tone="linear")
        channel = InsideOptions.channel.draw_with_options(
            range(channels), 0, key=f"{key}.channel", widget=st.select_slider
        )
        scaled, sees = (
            unit.gate[:, channel, None] * unit.weights,
            _("each row of A times its gate in channel {own}", own=channel),
        )
        pictures.board(
            f"{key}.own",
            pictures.pair_panel(data, _("A"), unit.weights, _("shared by all channels"), mark=0),
            pictures.pair_panel(data, _("diag(u) A"), scaled, sees),
            diverging=True,
        )

    return Step(
        mechanism=_(
            "A gate is a factor computed from the input. The matrix U holds one gate for each entry of the output "
            "(token and channel), and each entry is multiplied by its gate. All channels share one attention matrix, "
            "and the gates scale its rows differently for each channel."
        ),
        formula=rf"O = {symbol(1, 'U')} \odot ({symbol(0, 'A')} V),\quad "
        r"U = \operatorname{SiLU}(X W_u),\quad V = \operatorname{SiLU}(X W_v),\qquad "
        r"O_{\cdot c} = \operatorname{diag}(u_c)\, A\, V_{\cdot c}",
        shapes={"U": (n, total), "V": (n, total), "A": (n, n)},
        findings=gate_sentence(unit),
        draw=draw,
    )


def gate_sentence(unit: UnitAnalysis) -> str:
    """Return the sentence about how far the gates open, and how much they change the output beyond scaling."""
    shut, negative = (np.abs(unit.gate) < SHUT_GATE).mean(), (unit.gate < 0).mean()
    text = _(
        "The gates are untrained here: {shut:.0%} are nearly closed (between −{bound} and {bound}), and "
        "{negative:.0%} are negative. The largest gate is {most}.",
        shut=shut,
        bound=SHUT_GATE,
        negative=negative,
        most=number(unit.gate.max()),
    )
    if unit.gate_distance is None:
        does = _("The gated output is zero.")
    elif unit.gate_distance < MIN_SHOWN_SHARE:
        does = _("The gated output is a multiple of the output without gates, A V.")
    else:
        does = _(
            "The gates differ, so the gated output is not a multiple of the output without gates, A V. Even the "
            "closest multiple of A V differs from the gated output by {distance:.0%} of the size of the gated "
            "output.",
            distance=unit.gate_distance,
        )
    return paragraph(text, does)
