"""Linear attention, explained step by step on the Inside page.

The steps show the feature map, its kernel, and the sum over keys that all queries share.
"""

from functools import partial

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.theme import GREY
from app.ui.lazy import lazy_expander
from app.words.i18n import _, paragraph
from app.words.labels import setting_name, token_options
from attention_core.analysis.low_rank.factors import cosines, perplexity, uniform_weights
from attention_core.analysis.low_rank.feature_maps import feature_map
from attention_core.analysis.state.running_sum import QuerySums, sums_of_query
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.headline import needs
from pages.inside.options import InsideOptions
from pages.inside.pictures import Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step

HEAVY_SHARE = 0.05
"""Share of the query-key pairs that count as the heaviest."""
MAX_HEIGHT = 8.0
"""Larger values of a feature map are not drawn."""
LENGTHS = tuple(2**i for i in range(3, 15))
"""Sequence lengths at which the operations of both orders of multiplication are counted."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: sum, map, features, kernel, normalization, comparison with the reference."""
    ending = _(
        "Each query spreads its weight over effectively {own:.0f} keys, compared with {exact:.0f} keys in softmax "
        "(medians over queries).",
        own=np.median(perplexity(data.weights)),
        exact=np.median(perplexity(data.reference)),
    )
    return (
        _sum_first(data),
        _map(data),
        _features(data),
        _kernel(data),
        _normaliser(data),
        compare_with_reference(data, ending),
    )


def _map(data: HeadData) -> Step:
    current: str = data.setting("feature_map")
    entries = np.stack([data.qkv.q[data.head].numpy(), data.qkv.k[data.head].numpy()])
    d = entries.shape[-1]
    low, high = np.quantile(entries, (0.25, 0.75)).tolist()
    setting = next(s for s in data.attention.variant.params.settings() if s.name == "feature_map")

    def draw(key: str) -> None:
        x = np.linspace(-4, 4, 161)
        heights = {name: feature_map(name, x, size=d) * (d if name == "softmax" else 1) for name in setting.choices}
        ends = {"softmax": heights["exp"]}  # Both lines end at the same x, so that their names are in order.
        entry = Curve(
            _("middle 50% of the entries"),
            [low, high],
            [MAX_HEIGHT, MAX_HEIGHT],
            low=[0.0, 0.0],
            high=[MAX_HEIGHT, MAX_HEIGHT],
            colour=GREY,
            markers=False,
            name_index=0,
        )
        lines = [
            Curve(
                _("{d} × first entry of softmax(x, 0, …, 0)", d=d) if name == "softmax" else setting_name(name),
                x.tolist(),
                [
                    y if up < MAX_HEIGHT else None
                    for y, up in zip(heights[name], ends.get(name, heights[name]), strict=True)
                ],
                colour=i,
                dash="solid" if name == current else "dot",
                markers=False,
                label=line_name(name, d, chosen=name == current),
            )
            for i, name in enumerate(setting.choices)
        ]
        pictures.lines(
            [entry, *lines],
            key=key,
            x_title=_("entry of a query or key"),
            y_title="φ(x)",
            alt=_("Lines: the value of each feature map against its input, with a solid line for the chosen map"),
        )

    return Step(
        title=_("Feature map"),
        mechanism=_(
            "The feature map φ is applied to queries and keys. Its values are never negative, so no weight is negative."
        ),
        formula=r"\operatorname{sim}(q, k) = \varphi(q)^\top \varphi(k) \ge 0",
        shapes={"q": entries.shape[1:], r"\varphi(q)": data.parts["query_features"].shape},
        findings=map_sentence(current),
        draw=draw,
    )


def line_name(feature_map: str, d: int, *, chosen: bool) -> str:
    """Return the name at the end of a feature map's line; ``d`` is the length of a key."""
    name = _("softmax (scaled by {d})", d=d) if feature_map == "softmax" else setting_name(feature_map)
    return _("{name} (chosen)", name=name) if chosen else name


def map_sentence(feature_map: str) -> str:
    """Return the sentence that compares a feature map with exp; empty for other maps than elu+1 and relu."""
    if feature_map == "elu+1":
        return _(
            "For negative entries, elu+1 equals exp. Above 0, it grows only linearly, so it enlarges large entries "
            "much less than exp."
        )
    if feature_map == "relu":
        return _(
            "relu sets negative entries to 0. Above 0, it grows only linearly, so it enlarges large entries much less "
            "than exp."
        )
    return ""


def _features(data: HeadData) -> Step:
    q, k = data.parts["query_features"], data.parts["key_features"]
    both = np.concatenate([q, k])
    return Step(
        title=_("Features"),
        mechanism=_(
            "The feature map turns every query and key into a vector of features. Weights are dot products of features."
        ),
        formula=symbol(0, r"\varphi(Q)") + r",\ " + symbol(1, r"\varphi(K)") + r" \ge 0",
        shapes={r"\varphi(Q)": q.shape, r"\varphi(K)": k.shape},
        findings=_(
            "The mean cosine between query and key features is {cosine:.2f}. The closer it is to 1, the less the "
            "directions of queries and keys matter.",
            cosine=cosines(q, k).mean(),
        ),
        details=paragraph(
            zeros_sentence((both == 0).mean()),
            _("Because no feature is negative, no cosine between query and key features is negative."),
        ),
        draw=lambda key: pictures.features(data, q, k, key),
    )


def zeros_sentence(share: float) -> str:
    """Return the sentence about the share of the features that are zero."""
    if share == 0:
        return _("No feature is zero.")
    if share == 1:
        return _("All features are zero.")
    return _("{zero} of the features are zero.", zero=percent(share))


def _kernel(data: HeadData) -> Step:
    allowed = data.visible
    exact, own = data.reference[allowed], data.weights[allowed]
    ratio = own / np.maximum(exact, np.finfo(np.float32).tiny)
    heavy = exact >= np.quantile(exact, 1 - HEAVY_SHARE)
    is_equal = np.allclose(data.reference, uniform_weights(data.visible), atol=1e-6)

    def draw(key: str) -> None:
        pictures.scatter_plot(
            _("pairs of tokens"),
            exact,
            own,
            key=key,
            x_title=_("softmax weight"),
            y_title=_("linear attention weight"),
            alt=_("Points: each pair's weight in linear attention against its weight in softmax"),
        )

    return Step(
        title=_("Kernel"),
        mechanism=_(
            "The dot product of the features, a kernel, replaces the exponential of the dot product of query and key."
        ),
        formula=r"\frac{\varphi(q_i)^\top\varphi(k_j)}{\sum_l \varphi(q_i)^\top\varphi(k_l)}\quad\text{instead "
        r"of}\quad "
        r"\frac{e^{q_i\cdot k_j/\sqrt d}}{\sum_l e^{q_i\cdot k_l/\sqrt d}}",
        shapes={"A": data.weights.shape},
        findings=_("Softmax weights all keys of a query equally here, so the kernels cannot be compared.")
        if is_equal
        else kernel_sentence(float(np.median(ratio)), float(np.median(ratio[heavy]))),
        details=""
        if is_equal
        else _(
            "The weight of a query–key pair is {middle:.2g}× its softmax weight (median over all pairs). Among the "
            "{share:.0%} of pairs with the most softmax weight, the median is {heavy:.2g}×.",
            middle=np.median(ratio),
            share=HEAVY_SHARE,
            heavy=np.median(ratio[heavy]),
        ),
        draw=draw,
    )


def kernel_sentence(middle: float, heavy: float) -> str:
    """Return the sentence that says if the kernel (the variant's weight as a function of q and k) is flatter than exp.

    Args:
        middle: the ratio of the weight to softmax's weight at the median pair.
        heavy: the same ratio among the heaviest pairs.
    """
    if heavy < min(1, middle):
        return _(
            "Linear attention's kernel is flatter than softmax's exponential, so large softmax weights shrink most."
        )
    return _(
        "On this input, the pairs with the most softmax weight do not lose the most weight. In this sense, "
        "linear attention's kernel is not flatter than softmax's exponential."
    )


def _sum_first(data: HeadData) -> Step:
    (n, c), d = data.parts["key_features"].shape, data.qkv.v.shape[-1]
    size = data.qkv.q.shape[-1]
    softmax = ac.get("softmax")

    def adds(attention: ac.Attention, length: int) -> int:
        return attention.cost(length, size, causal=data.causal).multiply_adds

    grows = (
        _("With the causal mask, each token is added to the state before its query reads it.") if data.causal else ""
    )
    counted_as = (
        _("The multiply-adds are counted for values with {size} entries, as many as a key has.", size=size)
        if d != size
        else ""
    )

    def draw(key: str) -> None:
        chosen = InsideOptions.query.value
        query = data.last_word if chosen is None or chosen >= n else chosen
        sums = sums_of_query(data.qkv, data.attention, query, head=data.head, causal=data.causal)
        left, right = st.columns([2, 3], gap="medium")
        with left:
            st.markdown("**" + _("State") + "**")
            which = _("sum over all {n} keys", n=n)
            if data.causal:
                which = _("sum over keys 0 to {query}", query=query)
            words = {"row": _("feature"), "column": _("entry of v"), "caption": which}
            summed = pictures.panel("S = φ(K)ᵀ V", sums.values, mark=0, **words)
            pictures.board(f"{key}.sum", summed, unit=_("summed value"), diverging=True)
        with right:
            st.markdown("**" + _("Cost") + "**")
            both = ((_("(φ(Q) φ(K)ᵀ) V, like softmax"), softmax), (_("φ(Q) (φ(K)ᵀ V)"), data.attention))
            pictures.lines(
                [Curve(name, LENGTHS, [adds(of, m) for m in LENGTHS], colour=i) for i, (name, of) in enumerate(both)],
                key=key,
                height=560,
                x_title=_("tokens n"),
                y_title=_("multiply-adds"),
                log_x=True,
                log_y=True,
                mark=(n, _("this input")),
                x_ticks=LENGTHS[::2],
                alt=_(
                    "Lines: multiply-adds against the number of tokens, for two orders of multiplication: queries "
                    "times keys first, or keys times values first"
                ),
            )
        lazy_expander(_("Output of the query"), partial(_draw_output, data, sums, key), key=f"{key}.output")

    return Step(
        title=_("Sum first"),
        mechanism=_(
            "Keys and values are multiplied first, after a feature map φ has turned keys into features. The sum of "
            "the products is one matrix of fixed size, the state S."
        ),
        formula=r"\left(\varphi(Q)\,\varphi(K)^\top\right) V = \varphi(Q) "
        + symbol(0, r"\left(\varphi(K)^\top V\right)"),
        shapes={r"\varphi(K)^\top V": (c, d), r"\varphi(Q)\,\varphi(K)^\top": (n, n)},
        findings=paragraph(
            _("Each token is added to the state only once, so the cost grows with n instead of n²."),
            needs(data),
            grows,
            counted_as,
        ),
        draw=draw,
    )


def _normaliser(data: HeadData) -> Step:
    z, c = data.parts["normaliser"], data.parts["key_sums"].shape[-1]

    def draw(key: str) -> None:
        pictures.bars(
            {_("normaliser"): z},
            data.labels,
            key=key,
            x_title=_("query"),
            y_title="φ(q)·Σ φ(k)",
            alt=_("Bars: the number by which each query's weights are divided"),
        )

    return Step(
        title=_("Normaliser"),
        mechanism=paragraph(
            _("Each row is divided by the sum of its weights, so the weights sum to one, unless all of them are zero."),
            _("A single dot product gives this sum: the query's features times the sum of the key features so far.")
            if data.causal
            else _("A single dot product gives this sum: the query's features times the sum of all key features."),
        ),
        formula=r"Z_i = \varphi(q_i)^\top \sum_{l} \varphi(k_l)",
        shapes={r"\sum_l \varphi(k_l)": (c,), "Z": z.shape},
        findings=_(
            "The sum by which a row is divided ranges from {low} for “{least}” to {high} for “{most}”.",
            low=number(z.min(), 4),
            high=number(z.max(), 4),
            least=data.token(z.argmin()),
            most=data.token(z.argmax()),
        ),
        details=_("With the feature map exp, rows and their sums are rescaled to avoid overflow.")
        if data.setting("feature_map") == "exp"
        else "",
        draw=draw,
    )


def _draw_output(data: HeadData, sums: QuerySums, key: str) -> None:
    """Draw the choice of a query, and bars of its features, the sum of the keys' features, and the output."""
    InsideOptions.query.draw_with_options(
        fallback=data.last_word,
        key=f"{key}.query",
        width=240,
        label_visibility="collapsed",
        **token_options(data.labels),
    )
    st.markdown(
        _(
            "The query's features φ(q) weight the rows of S. Dividing the weighted sum by φ(q)ᵀ z, where z is the sum "
            "of all φ(k), gives the output."
        )
        if not data.causal
        else _(
            "The query's features φ(q) weight the rows of S. Dividing the weighted sum by φ(q)ᵀ z, where z is the sum "
            "of φ(k) up to the query, gives the output."
        )
    )
    feature = _("feature")
    parts = (
        ("φ(q)", sums.feature, feature, _("Bars: the features of the query")),
        ("z = Σ φ(k)", sums.keys, feature, _("Bars: the sum of the keys' features")),
        ("φ(q)ᵀ S / φ(q)ᵀ z", sums.output, _("entry of the output"), _("Bars: the output of the query")),
    )
    for index, (column, (name, values, title, alt)) in enumerate(zip(st.columns(3), parts, strict=True)):
        with column:
            pictures.bars(
                {name: values},
                [str(i) for i in range(len(values))],
                key=f"{key}.read.{index}",
                x_title=title,
                y_title=name,
                alt=alt,
                height=260,
            )
