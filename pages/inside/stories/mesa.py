"""Story of Mesa: the query is replaced by a least-squares solution, and its weights are compared with softmax's."""

import numpy as np

from app.words.i18n import _, escape_markdown, paragraph
from attention_core.analysis.low_rank.factors import cosines, lengths, participation_ratio
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: solved query, its weights, comparison with the reference."""
    sums = seen.weights.sum(-1)
    ending = _("A row of it sums to {low} … {high}.", low=number(sums.min()), high=number(sums.max()))
    return _solved(seen), _found(seen), beside_reference(seen, ending)


def _solved(seen: Seen) -> Step:
    queries, solved = seen.parts["queries"], seen.parts["solved"]
    turned, left = np.diag(cosines(queries, solved)), lengths(solved)

    def draw(key: str) -> None:
        places = list(range(len(left)))
        pictures.lines(
            [
                Curve(name, places, values.tolist(), colour=colour, marks=len(places) < 3)
                for colour, (name, values) in enumerate(((_("cosine with the query"), turned), (_("length"), left)))
            ],
            key=f"{key}.solved",
            x_title=_("token i"),
            y_title=_("the solved query"),
            alt=_("Lines: how each solved query lies to its query, and how long it is"),
        )

    return Step(
        title=_("The query, solved"),
        formula=r"\hat q_i = (H_i + \lambda I)^{-1} q_i,\qquad H_i = \sum_{l \le i} \Gamma_{il}\, k_l k_l^\top"
        if seen.causal
        else r"\hat q_i = (H_n + \lambda I)^{-1} q_i,\qquad H_n = \sum_{l \le n} \Gamma_{nl}\, k_l k_l^\top",
        shapes={"Q": queries.shape, r"\hat Q": solved.shape, "H": (queries.shape[-1],) * 2},
        sentence=paragraph(
            solved_sentence(turned, left, seen.labels, seen.setting("ridge")),
            "" if seen.causal else _("As no future is hidden, one system holds for all queries: that of all keys."),
        ),
        draw=draw,
    )


def solved_sentence(turned: np.ndarray, left: np.ndarray, labels: tuple[str, ...], ridge: float) -> str:
    """Return the sentence about how far least squares turns and shortens the queries.

    Args:
        turned: the cosine of each solved query with its query.
        left: the lengths of the solved queries, with the query's length as the unit.
        labels: one label per token.
        ridge: λ.
    """
    least = int(turned.argmin())
    return _(
        "Where keys say much the query is shortened most, and by that it turns to where they say little: the cosine "
        "with the query is {mean:.2f} on average and {least:.2f} at “{token}”, the length between {low} and "
        "{high}. Without any key it would be 1/λ = {most}.",
        mean=turned.mean(),
        least=turned[least],
        token=escape_markdown(labels[least]),
        low=number(left.min()),
        high=number(left.max()),
        most=number(1 / ridge),
    )


def _found(seen: Seen) -> Step:
    linear, read = seen.parts["linear"], seen.parts["read"]

    def draw(key: str) -> None:
        pictures.board(
            key,
            pictures.pairs(seen, _("By the query"), linear, _("linear attention")),
            pictures.pairs(seen, _("By the solved query"), read),
            scale="panel",
            unit=_("product"),
            diverging=True,
        )

    return Step(
        title=_("What it finds"),
        formula=r"q_i^\top k_j\, \Gamma_{ij} \;\longrightarrow\; \hat q_i^\top k_j\, \Gamma_{ij}"
        if seen.causal
        else r"q_i^\top k_j\, \Gamma_{nj} \;\longrightarrow\; \hat q_i^\top k_j\, \Gamma_{nj}",
        shapes={"K": seen.parts["keys"].shape, r"\hat Q K^\top": read.shape},
        sentence=found_sentence(
            float(participation_ratio(linear).mean()),
            float(participation_ratio(read).mean()),
            float((linear[seen.visible] < 0).mean()),
            float((read[seen.visible] < 0).mean()),
        ),
        draw=draw,
    )


def found_sentence(before: float, after: float, negative_before: float, negative_after: float) -> str:
    """Return the sentence about the spread and the negative weights of a row, with the query and with the solved query.

    Args:
        before: effective number of equal weights in a row with the query, on average.
        after: the same number with the solved query.
        negative_before: the share of negative weights with the query.
        negative_after: the share of negative weights with the solved query.
    """
    values = {"before": number(before), "after": number(after)}
    rests = (
        _("A row of linear attention rests on {before} tokens on average, with the solved query on {after}.", **values)
        if number(before) != number(after)
        else _("A row rests on {after} tokens on average, by the query as by the solved one.", **values)
    )
    signs = _(
        "{after} of the weights by the solved query are negative, {before} of those by the query.",
        after=percent(negative_after),
        before=percent(negative_before),
    )
    return paragraph(rests, signs)
