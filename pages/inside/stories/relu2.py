"""Story of squared ReLU: logits, their squares, normalizers, and the gated attention unit it comes from."""

import numpy as np
import streamlit as st

from app.figures.lines.spread import spread
from app.jobs import cached, runs
from app.words.i18n import N_, _, _n, paragraph
from app.words.isolation import isolated
from attention_core.analysis.state.gau import EXPANSION, UnitAnalysis, block_price, shared_size, unit_price
from attention_core.experiments import homogeneity
from attention_core.experiments.homogeneity import FACTORS, VARIANTS, HomogeneityRow
from attention_core.formatting import at_most, number, span
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later

MOST = 256
"""Tokens whose logits are scaled, at most; more tokens do not change the effect."""
SHUT = 0.1
"""Gates smaller than this count as shut."""
SAME = 0.005
"""Shares below this are printed as 0%."""
LENGTHS = tuple(2**i for i in range(5, 16))
"""Sequence lengths at which both costs are computed."""
DIVISORS = {"length": "n_i", "squared": "n_i^2", "fixed": "n_0", "sum": r"\sum_l \operatorname{relu}^2(\cdot)"}


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: logits, squares, normalizers, logit factor, one matrix, gate, cost, reference."""
    sums = seen.weights.sum(-1)
    ending = _("A row sums to {low:.2g} … {high:.2g}; softmax's to 1.", low=sums.min(), high=sums.max())
    return (
        _logits(seen),
        _squares(seen),
        _normalisers(seen),
        _factor(seen),
        _one_matrix(seen),
        _gate(seen),
        _price(seen),
        beside_reference(seen, ending),
    )


def _logits(seen: Seen) -> Step:
    logits = seen.parts["logits"]
    here = logits[seen.visible]

    def draw(key: str) -> None:
        pictures.board(key, pictures.pairs(seen, _("Logits"), logits), unit=_("logit"), diverging=True, tone="linear")

    return Step(
        title=_("Logits"),
        formula=r"x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
        shapes={"x": logits.shape},
        sentence=_(
            "The logits run from {low} to {high}, and {share:.0%} of them are negative: softmax gives those "
            "pairs little, squared ReLU gives them nothing.",
            low=number(here.min()),
            high=number(here.max()),
            share=(here < 0).mean(),
        ),
        draw=draw,
    )


def _squares(seen: Seen) -> Step:
    squares, allowed = seen.parts["squares"], seen.visible
    kept = (squares > 0).sum(-1)

    def draw(key: str) -> None:
        pictures.board(key, pictures.pairs(seen, _("Squares"), squares), unit=_("squared logit"))

    return Step(
        title=_("Squares"),
        formula=r"s_{ij} = \operatorname{relu}(x_{ij})^2",
        shapes={"s": squares.shape},
        sentence=zeros_sentence((squares[allowed] == 0).mean(), kept),
        draw=draw,
    )


def zeros_sentence(share: float, kept: np.ndarray) -> str:
    """Return the sentence about the share of zero entries, and how many keys each query keeps, ``[n]``."""
    return _n(
        "{share:.0%} of the entries are exactly zero: the median query keeps {kept:.0f} of {keys} keys, and {n} query "
        "keeps none. Softmax never gives a zero.",
        "{share:.0%} of the entries are exactly zero: the median query keeps {kept:.0f} of {keys} keys, and {n} "
        "queries keep none. Softmax never gives a zero.",
        n=int((kept == 0).sum()),
        share=share,
        kept=np.median(kept),
        keys=len(kept),
    )


def _normalisers(seen: Seen) -> Step:
    names = {"length": _("length n"), "squared": _("squared length n²"), "fixed": _("fixed n₀"), "sum": _("row sum")}
    own = seen.setting("normalizer")
    sums, divisor = seen.parts["sum"], seen.parts[own]
    positions = range(len(sums))

    def draw(key: str) -> None:
        lines = [
            Curve(
                title,
                positions,
                seen.parts[name].tolist(),
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
    return [
        f"{i} “{isolated(label)}”: {number(z, 3)}"
        for i, (label, z) in enumerate(zip(seen.labels, values.tolist(), strict=True))
    ]


def _factor(seen: Seen) -> Step:
    names = dict(zip(VARIANTS, (_("softmax"), _("over the row sum"), _("over the length")), strict=True))
    squares, sums = seen.parts["squares"], seen.parts["sum"][:, None]
    largest = float((squares / seen.parts["length"][:, None]).max())
    most_of_sum = float((squares / np.where(sums > 0, sums, 1.0)).max())
    n = min(seen.qkv.n, MOST)

    def draw(key: str) -> None:
        def chart(rows: list[HomogeneityRow], drawn_key: str) -> None:
            lines = []
            for i, (word, title) in enumerate(names.items()):
                own = [row for row in rows if row.variant == word and row.head == seen.head]
                found = spread((row.factor, row.entropy) for row in own)
                lines.append(found.curve(title, i, dash="dash" if i == 2 else "solid"))
                if i == 1 and own:
                    most = max(row.change for row in own)
                    st.caption(_("Over the row sum no weight moves by more than {most}.", most=at_most(most)))
                if i == 2 and own:
                    sums = span(min(row.row_low for row in own), max(row.row_high for row in own), ".2g")
                    st.caption(_("Over the length a row sums to {sums} at these factors, not to 1.", sums=sums))
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
            runs.run_immediately("homogeneity", tasks, chart, key=key)
        with right:
            st.markdown("**" + _("… and how large its weights are") + "**")
            heights = (
                [_top(seen, factor) for factor in FACTORS],
                [most_of_sum] * len(FACTORS),
                [largest * factor**2 for factor in FACTORS],
            )
            pictures.lines(
                [
                    Curve(title, FACTORS, ys, colour=i, dash="dash" if i == 2 else "solid")
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
    """Return the largest softmax weight when all logits are multiplied by ``factor``."""
    logits = factor * np.where(seen.visible, seen.parts["logits"].astype(float), -np.inf)
    return float(1 / np.exp(logits - logits.max(-1, keepdims=True)).sum(-1).min())


def _unit(seen: Seen) -> UnitAnalysis:
    return cached.gau(seen.source, seen.attention, causal=seen.causal)


def _width(seen: Seen) -> int:
    return seen.qkv.heads * seen.qkv.v.shape[-1]


@later(N_("One matrix (GAU)"))
def _one_matrix(seen: Seen) -> Step:
    """Build the step that shows the gated unit's single matrix next to the matrices of the heads."""
    found, n, width, s = _unit(seen), seen.qkv.n, _width(seen), shared_size(_width(seen))
    divisor = DIVISORS[seen.setting("normalizer")]

    def draw(key: str) -> None:
        own = _("head {head}, its own q and k", head=seen.head)
        pictures.board(
            key,
            pictures.pairs(seen, _("Gated unit"), found.weights, _("projections drawn, untrained")),
            pictures.pairs(seen, _("Squared ReLU"), seen.weights, own),
            *(pictures.pairs(seen, _("Softmax"), head, _("head {head}", head=i)) for i, head in enumerate(found.heads)),
            scale="panel",
        )
        if len(found.heads) < seen.qkv.heads:
            st.caption(_("Shown are the first {shown} of {heads} heads.", shown=len(found.heads), heads=seen.qkv.heads))

    return Step(
        formula=r"A = \frac{\operatorname{relu}^2(Q K^\top / \sqrt{s})}{" + divisor + r"},\quad "
        r"Q = \gamma_q \odot Z + \beta_q,\quad K = \gamma_k \odot Z + \beta_k,\quad "
        r"Z = \operatorname{SiLU}(X W_z)",
        shapes={"X": (n, width), "Z": (n, s), "A": (n, n)},
        sentence=matrix_sentence(seen.qkv.heads, EXPANSION * width, found.apart),
        draw=draw,
    )


def matrix_sentence(heads: int, channels: int, apart: float) -> str:
    """Return the sentence about the single matrix of all channels, and how much the heads' rows differ (``apart``)."""
    text = _(
        "Squared ReLU attention comes from the **gated attention unit**: all its {channels} channels share one matrix, "
        "made from one Z. Here X are the values of all heads side by side, every token normalised, and the unit is "
        "untrained.",
        channels=channels,
    )
    if heads == 1:
        return paragraph(text, _("This input has one head, so softmax has a single matrix too."))
    several = _(
        "Softmax has a matrix for each of the {heads} heads: {apart:.0%} of a row's mass lies on other tokens than in "
        "the heads' average.",
        heads=heads,
        apart=apart,
    )
    return paragraph(text, several)


@later(N_("Gate"))
def _gate(seen: Seen) -> Step:
    found = _unit(seen)
    (n, channels), total = found.gate.shape, EXPANSION * _width(seen)

    def draw(key: str) -> None:
        words = {"row": _("token"), "column": _("channel")}
        if channels < total:
            words["caption"] = _("the first {channels} of {total} channels", channels=channels, total=total)
        gate = pictures.panel(_("Gate U"), found.gate, seen.labels, list(map(str, range(channels))), **words)
        pictures.board(f"{key}.gate", gate, unit=_("gate"), diverging=True, tone="linear")
        own = InsideOptions.channel.draw_with_options(range(channels), 0, key=f"{key}.channel", widget=st.select_slider)
        scaled, sees = found.gate[:, own, None] * found.weights, _("what channel {own} sees", own=own)
        pictures.board(
            f"{key}.own",
            pictures.pairs(seen, _("A"), found.weights, _("shared by all channels")),
            pictures.pairs(seen, _("diag(u) A"), scaled, sees),
            diverging=True,
        )

    return Step(
        formula=r"O = U \odot (A V),\quad U = \operatorname{SiLU}(X W_u),\quad V = \operatorname{SiLU}(X W_v),\qquad "
        r"O_{\cdot c} = \operatorname{diag}(u_c)\, A\, V_{\cdot c}",
        shapes={"U": (n, total), "V": (n, total), "A": (n, n)},
        sentence=gate_sentence(found),
        draw=draw,
    )


def gate_sentence(found: UnitAnalysis) -> str:
    """Return the sentence about how far the gates open, and how much they change the output beyond scaling."""
    shut, negative = (np.abs(found.gate) < SHUT).mean(), (found.gate < 0).mean()
    text = _(
        "{shut:.0%} of these untrained gates are all but shut (between −{bound} and {bound}), {negative:.0%} are "
        "negative; the widest is {most}.",
        shut=shut,
        bound=SHUT,
        negative=negative,
        most=number(found.gate.max()),
    )
    if found.distance is None:
        does = _("Nothing comes through: A V is zero here, or every gate that it meets.")
    elif found.distance < SAME:
        does = _("They only scale: the gated output is a multiple of A V.")
    else:
        does = _(
            "They do more than scale: the gated output lies {distance:.0%} of its length away from every multiple of "
            "A V.",
            distance=found.distance,
        )
    alike = _(
        "So each channel has a matrix of its own, diag(u) A, but only its rows are scaled: in one row all channels "
        "share their weights among the tokens alike."
    )
    return paragraph(text, does, alike)


def _price(seen: Seen) -> Step:
    n, width, heads = seen.qkv.n, _width(seen), seen.qkv.heads

    def draw(key: str) -> None:
        left, right = st.columns(2)
        both = (
            (_("attention and feed-forward"), lambda m: block_price(m, width, heads), 1),
            (_("two gated units"), lambda m: unit_price(m, width), 2),
        )
        for place, title, name in (
            (left, _("multiply-adds"), "multiply_adds"),
            (right, _("numbers in attention matrices"), "matrices"),
        ):
            with place:
                pictures.lines(
                    [
                        Curve(word, LENGTHS, [times * getattr(price(m), name) for m in LENGTHS], colour=i)
                        for i, (word, price, times) in enumerate(both)
                    ],
                    key=f"{key}.{name}",
                    x_title=_("tokens n"),
                    y_title=title,
                    log_x=True,
                    log_y=True,
                    mark=n,
                    x_ticks=LENGTHS[::2],
                    height=380,
                    alt=_("Lines: {what} of both layers against the number of tokens", what=title),
                )

    return Step(
        title=_("Two for one"),
        formula=r"12 D^2 n + 2 D n^2 \quad\text{against}\quad 2\left((6 D^2 + D s)\, n + (2 D + s)\, n^2\right)",
        shapes={"D": (width,), "s": (shared_size(width),), "e = 2D": (EXPANSION * width,)},
        sentence=price_sentence(n, width, heads),
        draw=draw,
    )


def price_sentence(n: int, width: int, heads: int) -> str:
    """Return the sentence about the cost of two units and of the block they replace, here and at the longest length."""
    block, unit, longest = block_price(n, width, heads), unit_price(n, width), LENGTHS[-1]
    far = 2 * unit_price(longest, width).multiply_adds / block_price(longest, width, heads).multiply_adds
    return _(
        "In the paper two units take the place of one layer of attention and one feed-forward layer. At this width D = "
        "{width} they have {parameters:.2f}× as many parameters; on {n} tokens they take {adds:.2f}× as many "
        "multiply-adds, at {longest:,} tokens {far:.2f}×, as each A mixes twice as many channels. Their attention "
        "matrices hold {own:,} numbers, the layer's {theirs:,}, as it has one for each head.",
        width=width,
        parameters=2 * unit.parameters / block.parameters,
        n=n,
        adds=2 * unit.multiply_adds / block.multiply_adds,
        longest=longest,
        far=far,
        own=2 * unit.matrices,
        theirs=block.matrices,
    )
