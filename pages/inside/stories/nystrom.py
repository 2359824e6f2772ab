"""Nyström attention, explained step by step on the Inside page.

The steps show landmarks, three small factors, and the inverse of the middle factor. With an approximate inverse, the
product is often closer to softmax than with the exact one.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from app.figures.lines.curves import guide
from app.jobs import cached, dispatch
from app.matrix_board import Panel
from app.words.i18n import N_, _, _n, paragraph
from attention_core.analysis.low_rank.factors import product, relative_error_of
from attention_core.analysis.masks import membership
from attention_core.experiments import nystrom_inverse
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.headline import MIN_SHOWN_ERROR
from pages.inside.pictures import RESULT, Curve, symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step
from pages.inside.tokens import alternating_colours, coloured_text

EQUAL_RATIO = 1.02
"""Errors within this ratio count as equal."""
ZERO_UP_TO_ROUNDING = float(np.finfo(np.float32).eps)
"""Singular values up to this share of the largest one are rounding errors of the matrix, which is float32."""
SMALL_ERROR = 0.1
"""Relative errors up to this count as small."""
LEFT, INVERSE, RIGHT = range(3)
"""Indices of the colours of the three factors L, Z and R."""


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: factors, landmarks, inverse, comparison with the reference."""
    rows = data.weights.sum(-1)
    ending = _(
        "Negative entries account for {negative:.1%} of the total absolute weight. The row sums range "
        "from {low:.2f} to {high:.2f}.",
        negative=np.abs(np.minimum(data.weights, 0)).sum() / np.abs(data.weights).sum(),
        low=rows.min(),
        high=rows.max(),
    )
    return _factors(data), _landmarks(data), _inverse(data), compare_with_reference(data, ending)


def _shares(data: HeadData) -> dict[str, np.ndarray]:
    """Return the share of each token in each landmark, ``[m, n]``, under the keys ``"query"`` and ``"key"``."""
    return {
        name: membership.membership(x, *_settings(data))
        for name, x in membership.landmark_inputs(data.qkv, data.head).items()
    }


def _settings(data: HeadData) -> tuple[int, str]:
    return data.setting("landmarks"), data.setting("method")


def _labels(data: HeadData, shares: np.ndarray) -> list[str]:
    """Return one label per landmark: its number, its first three tokens, and "…" if it has more.

    Args:
        data: the variant on a head.
        shares: the share of each token in each landmark, ``[m, n]``.
    """
    members = [[data.labels[j] for j in np.flatnonzero(row)] for row in shares]
    return [f"{i}: {' '.join(tokens[:3])}{' …' if len(tokens) > 3 else ''}" for i, tokens in enumerate(members)]


@lazy_step(N_("Landmarks"))
def _landmarks(data: HeadData) -> Step:
    """Build the step that shows which tokens each landmark averages."""
    found = _shares(data)
    m, n = found["query"].shape
    means = data.setting("method") == "segment_means" or m == n
    findings, sizes = _landmark_findings(data, found, means=means)
    drawn = {"query": found["query"]} if means else found
    titles = {"query": _("Query landmarks"), "key": _("Key landmarks")}

    def draw(key: str) -> None:
        for name, of in drawn.items():
            title, owners, members = _("Landmarks") if means else titles[name], of.argmax(0).tolist(), _labels(data, of)
            notes = [members[owner] for owner in owners]
            text, matrix = st.columns(2, gap="medium")
            text.html(coloured_text(data.qkv.tokens, alternating_colours(owners), notes=notes, tags=owners))
            with matrix:
                shares = pictures.panel(title, of, None, data.labels, row=_("landmark"), column=_("token"))
                pictures.board(
                    f"{key}.shares.{name}", shares, unit=_("share of the token in the landmark"), tone="linear"
                )

    return Step(
        mechanism=_(
            "Similar tokens are averaged into landmarks, separately for queries and keys. In the text, each small "
            "number is the number of a landmark. All tokens from there to the next number belong to this landmark."
        )
        if not means
        else _(
            "Neighbouring queries are averaged into query landmarks, and neighbouring keys into key "
            "landmarks. In the text, a small number marks the first token of each landmark."
        ),
        formula=r"\tilde q_i = \frac{1}{|S_i|} \sum_{j \in S_i} q_j, \qquad "
        r"\tilde k_i = \frac{1}{|S'_i|} \sum_{j \in S'_i} k_j",
        shapes={r"\tilde Q": (m, data.qkv.q.shape[-1]), r"\tilde K": (m, data.qkv.k.shape[-1])},
        findings=findings,
        details=sizes,
        draw=draw,
    )


def landmark_sizes(m: int, smallest: int, largest: int) -> str:
    """Return the sentence that says how many neighbouring tokens each of m landmarks averages."""
    if smallest == largest:
        return _n(
            "The only landmark averages {most} neighbouring tokens.",
            "Each of the {n} landmarks averages {most} neighbouring tokens.",
            n=m,
            most=largest,
        )
    values = {"m": m, "least": smallest, "most": largest}
    if smallest + 1 == largest:
        return _("Each of the {m} landmarks averages {least} or {most} neighbouring tokens.", **values)
    return _("Each of the {m} landmarks averages {least} to {most} neighbouring tokens.", **values)


def _landmark_findings(data: HeadData, shares: dict[str, np.ndarray], *, means: bool) -> tuple[str, str]:
    """Return the findings and the details of the step about landmarks."""
    m, n = shares["query"].shape
    if m == n:
        alone = _n(
            "The only token is its own landmark, so nothing is averaged.",
            "Each of the {n} tokens is its own landmark, so nothing is averaged.",
            n=n,
        )
        return alone, ""
    sizes = {name: (share > 0).sum(-1) for name, share in shares.items()}
    vectors = membership.landmark_inputs(data.qkv, data.head)
    lost_shares = {name: membership.lost_variance(vectors[name], share) for name, share in shares.items()}
    if means:
        text = landmark_sizes(m, sizes["query"].min(), sizes["query"].max())
    else:
        text = paragraph(
            _n(
                "{tokens} tokens are averaged into {n} landmark.",
                "{tokens} tokens are averaged into {n} landmarks of similar tokens. The largest query landmark "
                "averages {query} queries, and the largest key landmark averages {key} keys.",
                n=m,
                tokens=n,
                query=sizes["query"].max(),
                key=sizes["key"].max(),
            ),
            _(
                "One more iteration of k-means would move the landmarks by {drift:.1%} of their length.",
                drift=max(membership.landmark_drift(x, *_settings(data)) for x in vectors.values()),
            ),
        )
    discarded = _(
        "Averaging discards {query:.0%} of the variance of the queries and {key:.0%} of the variance of the keys.",
        query=lost_shares["query"],
        key=lost_shares["key"],
    )
    return discarded, text


def _factors(data: HeadData) -> Step:
    left, middle, right, inverse = (data.parts[name] for name in ("left", "middle", "right", "inverse"))
    n, m = left.shape
    top = float(max(np.abs(data.weights).max(), np.abs(data.reference).max()))
    sides_top = float(max(left.max(), right.max()))
    blurred = product(left, right)
    without, error = (relative_error_of(each, data.reference) for each in (blurred, data.weights))
    top = max(top, float(blurred.max()))

    def draw(key: str) -> None:
        landmark = _("landmark")
        to_landmarks, to_keys = _("queries to landmarks"), _("landmarks to keys")
        inverted = _("exact inverse") if data.setting("inverse") == "exact" else _("approximate inverse")
        pictures.board(
            f"{key}.factors",
            replace(
                pictures.pair_panel(data, "A = L × Z × R", data.weights, error_caption(error), mark=RESULT), top=top
            ),
            replace(
                pictures.pair_panel(data, _("L × R (without Z)"), blurred, error_caption(without)),
                top=top,
                scale_panel="A",
            ),
            replace(
                pictures.reference_panel(data),
                title=_("{name} (target)", name=pictures.reference_title(data)),
                caption=pictures.strong_column(data),
                top=top,
                scale_panel="A",
            ),
            replace(
                pictures.panel("L", left, data.labels, column=landmark, caption=sized(to_landmarks, left), mark=LEFT),
                top=sides_top,
                full_side=n,
            ),
            replace(_landmark_panel("Z", inverse, sized(inverted, inverse), mark=INVERSE), full_side=n),
            replace(
                pictures.panel("R", right, None, data.labels, row=landmark, caption=sized(to_keys, right), mark=RIGHT),
                top=sides_top,
                scale_panel="L",
                full_side=n,
            ),
            scale="panel",
        )

    return Step(
        title=_("Three factors"),
        headline=inverse_headline(without, error, averaged=m < n),
        mechanism=paragraph(
            _("The product L × R without Z would blur the weights twice.")
            if m == n
            else _("Each landmark is an average of neighbouring tokens, so L and R both blur.")
            if data.setting("method") == "segment_means"
            else _("Each landmark is an average of similar tokens, so L and R both blur."),
            _("Z is meant to undo one blur. Compare A and L × R with softmax."),
        ),
        formula=rf"{symbol(RESULT, 'A')} = "
        rf"{symbol(LEFT, 'L')} \times {symbol(INVERSE, 'Z')} \times {symbol(RIGHT, 'R')}",
        shapes={
            r"L = \operatorname{softmax}(Q \tilde K^\top / \sqrt d)": left.shape,
            r"Z \approx \operatorname{softmax}(\tilde Q \tilde K^\top / \sqrt d)^{-1}": middle.shape,
            r"R = \operatorname{softmax}(\tilde Q K^\top / \sqrt d)": right.shape,
        },
        findings=paragraph(
            ""
            if m < n
            else _("Every token is its own landmark, so no tokens are averaged and no information is lost."),
            inverse_count(
                cached.heads_closer_without_inverse(data.source, data.attention), len(data.qkv.q), without, error
            ),
            inverse_effect(without, error, float(np.abs(inverse).max()), averaged=m < n),
        ),
        draw=draw,
    )


def inverse_headline(without: float, error: float, *, averaged: bool) -> str:
    """Return the sentences about the three factors and about the effect of the inverse Z on the matrix error.

    Args:
        without: the error without Z.
        error: the error with Z.
        averaged: whether there are fewer landmarks than tokens.
    """
    values = {"without": percent(without), "error": percent(error)}
    return paragraph(
        _("Nyström replaces the softmax matrix with a product of three smaller ones.")
        if averaged
        else _("Nyström replaces the softmax matrix with a product of three others."),
        _("In this head, the middle one (Z) hardly changes the matrix error: {error}.", **values)
        if values["without"] == values["error"]
        else _(
            "In this head, the middle one (Z) makes the matrix error smaller: {error} instead of {without}.", **values
        )
        if error < without
        else _(
            "In this head, the middle one (Z) makes the matrix error larger: {error} instead of {without}.", **values
        ),
    )


def inverse_count(raised: int, heads: int, without: float, error: float) -> str:
    """Return the sentence about in how many heads the inverse Z lowers the matrix error; empty for one head.

    Args:
        raised: the number of heads in which Z raises the error.
        heads: the number of heads.
        without: the error without Z in the shown head.
        error: the error with Z in the shown head.
    """
    values = {"raised": raised, "lowered": heads - raised, "heads": heads}
    if heads == 1:
        return ""
    if percent(without) == percent(error):
        return _("In {raised} of {heads} heads, Z raises the error.", **values)
    if error < without:
        return _("In {lowered} of {heads} heads, including this head, Z lowers the error.", **values)
    return _("In {lowered} of {heads} heads, Z lowers the error; in this head, it raises it.", **values)


def inverse_effect(without: float, error: float, largest: float, *, averaged: bool) -> str:
    """Return why the inverse Z increases the matrix error; empty if it does not.

    Args:
        without: the error without Z.
        error: the error with Z.
        largest: the largest entry of Z in absolute value.
        averaged: whether there are fewer landmarks than tokens.
    """
    harms = without < error and percent(without) != percent(error)
    if not harms or not averaged or largest <= 1:
        return ""
    return _(
        "Averaging tokens causes errors in L and R; the large entries of Z (up to ±{largest}) amplify these errors.",
        largest=number(largest),
    )


@lazy_step(N_("The inverse"))
def _inverse(data: HeadData) -> Step:
    middle, inverse = data.parts["middle"], data.parts["inverse"]
    (task,) = nystrom_inverse.tasks(data.source, head=data.head, word=data.attention.word)
    rows = dispatch.rows("nystrom_inverse", task, in_process=True)
    values, _inverted = nystrom_inverse.inverted_shares(middle, 0)

    def draw(key: str) -> None:
        how, identity = (
            _("computed with: {how}", how=_inverse_method(data)),
            _("identity matrix if Z is the exact inverse"),
        )
        pictures.board(
            f"{key}.inverse",
            _landmark_panel(_("Matrix M"), middle),
            _landmark_panel(_("Inverse Z"), inverse, caption=how, mark=INVERSE),
            _landmark_panel(_("M Z"), product(middle, inverse), caption=identity),
            scale="panel",
        )
        left, right = st.columns(2)
        with left:
            st.markdown("**" + _("Error of the inverse Z") + "**")
            _draw_curves(_residuals(rows), f"{key}.residual", _("residual ‖I − M Z‖ / ‖I‖"))
        with right:
            st.markdown("**" + _("Error of the attention matrix A") + "**")
            _draw_curves(_errors(rows), f"{key}.error", _("error of A compared with softmax"), percent=True)
        _directions(data, key)

    return Step(
        mechanism=_(
            "M holds the landmarks' weights on each other. An iteration that uses only matrix products computes Z, an "
            "approximate inverse of M."
        )
        if data.setting("inverse") == "iterative"
        else _(
            "M holds the landmarks' weights on each other, and Z is its exact inverse. The charts compare the "
            "exact inverse with an iteration that uses matrix products only."
        ),
        formula=rf"{symbol(INVERSE, 'Z')} \leftarrow \tfrac14 Z \left(13 I - M Z \left(15 I - M Z "
        r"\left(7 I - M Z\right)\right)\right)",
        shapes={"M": middle.shape, r"Z_0 = M^\top / (\|M\|_1 \|M\|_\infty)": inverse.shape, "Z": inverse.shape},
        findings=inverse_sentence(rows),
        details=inverse_size(rows[-1].largest, values),
        draw=draw,
    )


def _landmark_panel(title: str, values: np.ndarray, caption: str = "", mark: int | None = None) -> Panel:
    landmark = _("landmark")
    return pictures.panel(title, values, row=landmark, column=landmark, caption=caption, mark=mark)


def _inverse_method(data: HeadData) -> str:
    if data.setting("inverse") == "exact":
        return _("exact inverse")
    return _iteration_count(data.setting("iterations"))


def _iteration_count(count: int) -> str:
    return _n("{n} iteration", "{n} iterations", n=count)


def sized(meaning: str, factor: np.ndarray) -> str:
    """Return the caption of a factor: what it is, and on a second line its size."""
    return f"{meaning}\n{' × '.join(f'{side:,}' for side in factor.shape)}"


def error_caption(error: float) -> str:
    """Return the caption of a product of factors with its matrix error."""
    return _("matrix error {error}", error=percent(error))


def inverse_sentence(rows: Sequence[InverseRow]) -> str:
    """Return the sentences that say if a more exact inverse gives a better matrix, and why.

    Args:
        rows: one row per number of iterations, followed by the exact inverse.
    """
    *iterated, exact = (row.error for row in rows)
    if max(exact, *iterated) < MIN_SHOWN_ERROR:
        return _(
            "With each number of iterations, and with the exact inverse, the error of the attention matrix A is less "
            "than {small:.1%}.",
            small=MIN_SHOWN_ERROR,
        )
    best = int(np.argmin(iterated))
    if exact > EQUAL_RATIO * iterated[best]:
        reason = (
            _(
                "The exact inverse is worse than an approximate inverse, because inverting small singular values "
                "amplifies the error from averaging tokens into landmarks."
            )
            if exact > SMALL_ERROR
            else _("Stopping the iteration early gives a smaller error than the exact inverse. Both errors are small.")
        )
    elif exact > SMALL_ERROR:
        reason = _("The error comes from averaging tokens into landmarks, not from the inverse.")
    else:
        reason = _(
            "A more exact inverse gives a smaller matrix error, because averaging into landmarks causes little "
            "error that the inverse could amplify."
        )
    return paragraph(
        reason,
        _n(
            "With the iteration, the error of A is smallest after {n} iteration ({error}). With the exact inverse, it "
            "is {exact}.",
            "With the iteration, the error of A is smallest after {n} iterations ({error}). With the exact inverse, it "
            "is {exact}.",
            n=best + 1,
            error=percent(iterated[best]),
            exact=percent(exact),
        ),
    )


def inverse_size(largest: float, values: np.ndarray) -> str:
    """Return the sentences about the size of the exact inverse.

    Args:
        largest: its largest entry in absolute value.
        values: the singular values of M, descending.
    """
    zero = values[-1] <= ZERO_UP_TO_ROUNDING * values[0]
    return paragraph(
        _("The smallest singular value of M is zero up to rounding.")
        if zero
        else _("The largest singular value of M is {ratio} times the smallest.", ratio=number(values[0] / values[-1])),
        _("The largest entry of the exact inverse of M is {largest} in absolute value.", largest=number(largest)),
    )


def _draw_curves(curves_: Sequence[Curve], key: str, title: str, *, percent: bool = False) -> None:
    """Draw curves of one measure over the number of iterations; ``percent`` writes it as a percentage."""
    pictures.lines(
        curves_,
        key=key,
        x_title=_("iterations"),
        y_title=title,
        log_y=True,
        percent=percent,
        x_ticks=curves_[0].x,
        height=320,
        alt=_("Lines: {what} against the number of iterations", what=title),
    )


def _residuals(rows: Sequence[InverseRow]) -> list[Curve]:
    *iterated, exact = rows
    name = _("iterative (exact inverse: {residual})", residual=number(exact.residual, 1))
    return [Curve(name, _counts(rows), [row.residual for row in iterated])]


def _errors(rows: Sequence[InverseRow]) -> list[Curve]:
    *iterated, exact = rows
    x = _counts(rows)
    ends = [x[0], x[-1]]
    errors = [row.error for row in iterated]
    best = int(np.argmin(errors))
    texts = [_("smallest: {error}", error=percent(errors[i])) if i == best else "" for i in range(len(errors))]
    return [
        Curve(_("iterative"), x, errors, large_index=best, texts=texts),
        guide(_("exact inverse"), ends, [exact.error] * 2, "dash"),
    ]


def _counts(rows: Sequence[InverseRow]) -> list[int]:
    return [row.iterations for row in rows if row.iterations is not None]


def _directions(data: HeadData, key: str) -> None:
    """Draw the singular values of the middle factor, and which share of each is inverted after some iterations."""
    iterations = int(data.setting("iterations"))
    values, share = nystrom_inverse.inverted_shares(data.parts["middle"], iterations)
    x = list(range(1, len(values) + 1))
    st.markdown("**" + _("The iteration inverts small singular values last") + "**")
    exact = data.setting("inverse") == "exact"
    st.caption(inverted_sentence((share >= 0.9).sum(), len(values), iterations, values[-1], exact=exact))
    left, right = st.columns(2)
    with left:
        pictures.lines(
            [Curve(_("singular values of M"), x, values.tolist(), name_at_end=False)],
            key=f"{key}.values",
            x_title=_("singular vector"),
            y_title=_("singular value of M"),
            log_y=True,
            height=300,
            alt=_("Line: the singular values of the landmark matrix M, in descending order"),
        )
    with right:
        shown = sorted({1, iterations, 12})
        pictures.lines(
            [
                *(
                    Curve(
                        _iteration_count(count),
                        x,
                        colour=i,
                        y=nystrom_inverse.inverted_shares(data.parts["middle"], count)[1].tolist(),
                    )
                    for i, count in enumerate(shown)
                ),
                guide(_("exact inverse"), [x[0], x[-1]], [1.0, 1.0], "dash"),
            ],
            key=f"{key}.shares",
            x_title=_("singular vector"),
            y_title=_("factor of M Z (exact inverse: 1)"),
            height=300,
            alt=_(
                "Lines: the factor by which M Z scales each singular vector of the landmark matrix M, where Z is "
                "its approximate inverse after different numbers of iterations"
            ),
        )


def inverted_sentence(done: int, m: int, iterations: int, smallest: float, *, exact: bool) -> str:
    """Return the sentence about how many singular vectors the iteration has inverted, and the smallest singular value.

    Args:
        done: number of singular vectors that are inverted to at least 90%.
        m: number of singular vectors.
        iterations: number of iterations.
        smallest: the smallest singular value.
        exact: whether the variant uses the exact inverse instead of the iteration.
    """
    values = {"done": done, "m": m, "least": number(smallest)}
    if exact:
        return _n(
            "Here, Z is the exact inverse of M, so M Z leaves every singular vector of M unchanged (factor 1), unless "
            "its singular value is zero up to rounding. The smallest singular value is {least}. With an approximate "
            "inverse from {n} iteration, M Z would scale {done} of the {m} singular vectors by a factor of at least "
            "0.9.",
            "Here, Z is the exact inverse of M, so M Z leaves every singular vector of M unchanged (factor 1), unless "
            "its singular value is zero up to rounding. The smallest singular value is {least}. With an approximate "
            "inverse from {n} iterations, M Z would scale {done} of the {m} singular vectors by a factor of at least "
            "0.9.",
            n=iterations,
            **values,
        )
    return _n(
        "After {n} iteration, M Z scales {done} of the {m} singular vectors of M by a factor of at least 0.9. The "
        "exact inverse would leave every singular vector unchanged (factor 1), unless its singular value is zero up to "
        "rounding. The smallest singular value is {least}.",
        "After {n} iterations, M Z scales {done} of the {m} singular vectors of M by a factor of at least 0.9. The "
        "exact inverse would leave every singular vector unchanged (factor 1), unless its singular value is zero up to "
        "rounding. The smallest singular value is {least}.",
        n=iterations,
        **values,
    )
