"""Squared ReLU: logits, their squares, what they may be divided by, and the gated unit they come from."""

import numpy as np
import streamlit as st

from app import run
from app.figures.spread import spread
from app.inside import gau, pictures
from app.inside.closing import beside_softmax, shown, visible
from app.inside.pictures import Curve
from app.inside.step import Seen, Step
from app.text import _
from attention_core.experiments import homogeneity
from attention_core.experiments.homogeneity import FACTORS, VARIANTS
from attention_core.experiments.task import Row
from attention_core.writing import number

MOST = 256
"""Tokens at most whose logits are multiplied: the effect needs no more."""


def steps(seen: Seen) -> tuple[Step, ...]:
    """From the logits to the weights, and to the unit that makes do with one matrix of them."""
    sums = seen.weights.sum(-1)
    ending = _("A row sums to {low:.2g} … {high:.2g}; softmax's to 1.", low=sums.min(), high=sums.max())
    return (
        _logits(seen),
        _squares(seen),
        _normalisers(seen),
        _factor(seen),
        *gau.steps(seen),
        beside_softmax(seen, ending),
    )


def _logits(seen: Seen) -> Step:
    logits = seen.parts["logits"]
    here = logits[visible(seen)]

    def draw(key: str) -> None:
        pictures.grid(
            _("Logits"),
            shown(seen, logits),
            key,
            seen.labels,
            seen.labels,
            unit=_("logit"),
            diverging=True,
            tone="linear",
        )

    return Step(
        title=_("Logits"),
        formula=r"x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
        shapes={"x": logits.shape},
        sentence=_(
            "The logits run from {low} to {high}, and {share:.0%} of them are negative: softmax gives those "
            "pairs little, squared ReLU gives them nothing.",
            low=number(float(here.min())),
            high=number(float(here.max())),
            share=(here < 0).mean(),
        ),
        draw=draw,
    )


def _squares(seen: Seen) -> Step:
    squares, allowed = seen.parts["squares"], visible(seen)
    kept = (squares > 0).sum(-1)

    def draw(key: str) -> None:
        pictures.grid(_("Squares"), shown(seen, squares), key, seen.labels, seen.labels, unit=_("squared logit"))

    return Step(
        title=_("Squares"),
        formula=r"s_{ij} = \operatorname{relu}(x_{ij})^2",
        shapes={"s": squares.shape},
        sentence=_(
            "{share:.0%} of the entries are exactly zero: the median query keeps {kept:.0f} of {n} keys, and {none} "
            "queries keep none. Softmax never gives a zero.",
            share=(squares[allowed] == 0).mean(),
            kept=np.median(kept),
            n=len(squares),
            none=(kept == 0).sum(),
        ),
        draw=draw,
    )


def _normalisers(seen: Seen) -> Step:
    names = {"length": _("length n"), "squared": _("squared length n²"), "fixed": _("fixed n₀"), "sum": _("row sum")}
    own = seen.attention.params.normalizer  # type: ignore[attr-defined]
    sums, divisor = seen.parts["sum"], seen.parts[own]
    positions = range(len(sums))

    def draw(key: str) -> None:
        lines = [
            Curve(
                name=title,
                x=positions,
                y=[z if z > 0 else None for z in seen.parts[name].tolist()],
                colour=i,
                dash="solid" if name == own else "dash",
                marks=False,
                notes=_notes(seen, seen.parts[name]),
            )
            for i, (name, title) in enumerate(names.items())
        ]
        pictures.lines(
            lines,
            key=key,
            x_title=_("query"),
            y_title=_("what its row is divided by"),
            log_y=True,
            alt=_("Lines: the length, its square, the fixed length and the row sum of every query"),
        )

    return Step(
        title=_("Normalisers"),
        formula=r"A_{ij} = \frac{s_{ij}}{Z_i},\qquad "
        r"Z_i = n_i,\quad n_i^2,\quad n_0 \quad\text{or}\quad \textstyle\sum_l s_{il}",
        shapes={"Z": divisor.shape},
        sentence=_(
            "The row sums lie between {low:.3g} and {high:.3g}, median {middle:.3g}; the length is at most {n}, the "
            "fixed n₀ is {base:.0f}. Here rows are divided by the {own}, so that the median row sums to {total:.2g}.",
            low=sums.min(),
            high=sums.max(),
            middle=np.median(sums),
            n=len(sums),
            base=seen.parts["fixed"][0],
            own=names[own],
            total=np.median(seen.weights.sum(-1)),
        ),
        draw=draw,
    )


def _notes(seen: Seen, values: np.ndarray) -> list[str]:
    return [f"{i} “{label}”: {z:.3g}" for i, (label, z) in enumerate(zip(seen.labels, values.tolist(), strict=True))]


def _factor(seen: Seen) -> Step:
    names = dict(zip(VARIANTS, (_("softmax"), _("over the row sum"), _("over the length")), strict=True))
    squares, sums = seen.parts["squares"], seen.parts["sum"][:, None]
    largest = float((squares / seen.parts["length"][:, None]).max())
    most_of_sum = float((squares / np.where(sums > 0, sums, 1.0)).max())
    n = min(seen.qkv.n, MOST)

    def draw(key: str) -> None:
        def chart(rows: list[Row], drawn_key: str) -> None:
            lines = []
            for i, (word, title) in enumerate(names.items()):
                own = [r for r in rows if r["variant"] == word and r["head"] == seen.head]
                found = spread((float(r["factor"] or 0), float(r["entropy"] or 0)) for r in own)
                lines.append(found.curve(title, i, dash="dash" if i == 2 else "solid"))
                if i == 1 and own:
                    most = max(float(r["change"] or 0) for r in own)
                    st.caption(_("Over the row sum no weight moves by more than {most}.", most=number(most, 1)))
            pictures.lines(
                lines,
                key=drawn_key,
                x_title=_("factor λ on every logit"),
                y_title=_("entropy of a row's shares (nats)"),
                log_x=True,
                x_ticks=FACTORS,
                height=400,
                alt=_("Lines: the entropy of softmax and of squared ReLU against the factor"),
            )

        tasks = homogeneity.tasks(seen.source, n=n, causal=seen.causal)
        left, right = st.columns(2)
        with left:
            st.markdown("**" + _("How even a row is, scaled to sum to one …") + "**")
            run.at_once("homogeneity", tasks, chart, key=key)
        with right:
            st.markdown("**" + _("… and how large its weights are") + "**")
            heights = (
                [_top(seen, factor) for factor in FACTORS],
                [most_of_sum] * len(FACTORS),
                [largest * factor**2 for factor in FACTORS],
            )
            pictures.lines(
                [
                    Curve(
                        name=title,
                        x=FACTORS,
                        y=[y if y > 0 else None for y in ys],
                        colour=i,
                        dash="dash" if i == 2 else "solid",
                    )
                    for i, (title, ys) in enumerate(zip(names.values(), heights, strict=True))
                ],
                key=f"{key}.largest",
                x_title=_("factor λ on every logit"),
                y_title=_("largest weight"),
                log_x=True,
                log_y=True,
                x_ticks=FACTORS,
                height=400,
                alt=_("Lines: the largest weight of softmax and of squared ReLU against the factor"),
            )

    return Step(
        title=_("Logits times λ"),
        formula=r"\frac{\operatorname{relu}(\lambda x_{ij})^2}{\sum_l \operatorname{relu}(\lambda x_{il})^2} = "
        r"\frac{\lambda^2 s_{ij}}{\lambda^2 \sum_l s_{il}}",
        shapes={"A": (n, n)},
        sentence=_(
            "Divided by the length the largest weight, {one}, becomes {four} when all logits double; divided "
            "by the row sum λ² cancels and nothing moves, so no temperature can sharpen it.",
            one=number(largest, 3),
            four=number(4 * largest, 3),
        ),
        draw=draw,
    )


def _top(seen: Seen, factor: float) -> float:
    """The largest weight of softmax when all logits are multiplied."""
    logits = factor * np.where(visible(seen), seen.parts["logits"].astype(float), -np.inf)
    return float(1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1).min())
