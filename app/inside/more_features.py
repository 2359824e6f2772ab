"""Performer's error against the number of its features: the sweep and what it shows."""

import numpy as np
import streamlit as st

from app import sweep
from app.figures.spread import Spread, spread
from app.figures.theme import GREY
from app.inside import pictures
from app.inside.closing import visible
from app.inside.pictures import Curve
from app.inside.step import Seen, Step
from app.text import _
from attention_core.experiments import performer_error
from attention_core.experiments.performer_error import LADDER, TOKENS, WAYS
from attention_core.experiments.task import Row

FACTORS = (1.0, 0.25, 0.05)
"""What logits may be multiplied by: as they are, and small enough for the theory to show."""


def setting(seen: Seen, name: str) -> object:
    """One of the variant's settings."""
    return getattr(seen.attention.params, name)


def pair_sizes(seen: Seen) -> np.ndarray:
    """``‖x + y‖²`` of each visible pair: one positive feature's relative variance is ``e`` to this, less one."""
    x, y = (part[seen.head].numpy().astype(float) * part.shape[-1] ** -0.25 for part in (seen.qkv.q, seen.qkv.k))
    sums = (x**2).sum(-1)[:, None] + (y**2).sum(-1) + 2 * x @ y.T
    return sums[visible(seen)]


def more_features(seen: Seen) -> Step:
    """The step that draws ever more features, in every way, with many seeds."""
    ways = dict.fromkeys([*WAYS, (str(setting(seen, "kind")), bool(setting(seen, "orthogonal")))])
    kinds = list(dict.fromkeys(kind for kind, _way in ways))
    typical = float(np.median(pair_sizes(seen)))

    def draw(key: str) -> None:
        measures = {"kernel": _("similarities"), "matrix": _("matrix")}
        names = {1.0: _("as they are"), 0.25: _("a quarter"), 0.05: _("a twentieth")}
        with st.container(horizontal=True):
            measure = st.segmented_control(
                _("Error of"), list(measures), key=f"{key}.measure", format_func=measures.__getitem__, required=True,
                default="kernel",
            )  # fmt: skip
            factor = st.segmented_control(
                _("Logits"), FACTORS, key=f"{key}.factor", format_func=names.__getitem__, required=True, default=1.0,
                help=_("The theory speaks of small logits: see what it promises there, and what is left of it here."),
            )  # fmt: skip

        def chart(rows: list[Row], drawn_key: str) -> None:
            found = {
                way: spread(
                    (float(r["features"] or 0), float(r[measure] or 0))
                    for r in rows
                    if (r["kind"], r["orthogonal"]) == way
                )
                for way in ways
            }
            lines = [
                each.curve(
                    f"{_(kind)}, {_('orthogonal') if straight else _('independent')}", kinds.index(kind),
                    dash="solid" if straight else "dot", band=straight,
                )
                for (kind, straight), each in found.items()
            ]  # fmt: skip
            start = found["hyperbolic", True].middle[0] if found["hyperbolic", True].x else 1.0
            guide = [start * (LADDER[0] / m) ** 0.5 for m in LADDER]
            lines.append(Curve(name="1/√m", x=LADDER, y=guide, colour=GREY, dash="dash", marks=False))
            st.markdown(_fall(found))
            pictures.lines(
                lines, key=drawn_key, x_title=_("directions m"), y_title=_("relative error"), log_x=True, log_y=True,
                x_ticks=LADDER, height=440,
                alt=_("Lines: the error of each way to draw features against their number"),
            )  # fmt: skip

        tasks = performer_error.tasks(
            seen.source, head=seen.head, causal=seen.causal, row_norms=str(setting(seen, "row_norms")), factor=factor,
            ways=tuple(ways),
        )  # fmt: skip
        sweep.show("performer_error", tasks, chart, key=f"{key}.sweep", effort=lambda task: 64 + task.features)

    n = min(seen.qkv.n, TOKENS)
    return Step(
        title=_("Error against features"),
        formula=r"\text{error} \sim \frac{1}{\sqrt m}",
        shapes={"W": (LADDER[-1], seen.qkv.q.shape[-1]), r"\varphi(Q)\,\varphi(K)^\top": (n, n)},
        sentence=_(
            "Independent positive features err by {half} / √m on the median pair of this head. Divide its logits by "
            "four and it is {quarter} / √m: see where the promised slope begins.",
            half=f"$e^{{{typical / 2:.1f}}}$", quarter=f"$e^{{{typical / 8:.1f}}}$",
        ),
        draw=draw,
    )  # fmt: skip


def _fall(found: dict[tuple[str, bool], Spread]) -> str:
    """How far the error falls, in one sentence."""
    first = found["positive", True]
    if len(first.x) < 2 or not found["trig", False].x:
        return _("Drawing directions …")
    ends = {way: each.middle[-1] for way, each in found.items()}
    best = min(ends, key=ends.__getitem__)
    slope = np.polyfit(np.log(first.x), np.log(first.middle), 1)[0]
    return _(
        "From {a:.0f} to {b:.0f} directions **positive** features' error falls from {start:.2g} to {end:.2g}, as m to "
        "the power {slope:.2f} where -0.5 was promised. The least is {least:.2g}, by **{best}**; **trig** has "
        "{trig:.3g}.",
        a=first.x[0], b=first.x[-1], start=first.middle[0], end=first.middle[-1], slope=slope, least=ends[best],
        best=best[0], trig=ends["trig", True],
    )  # fmt: skip
