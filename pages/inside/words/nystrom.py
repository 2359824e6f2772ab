"""Sentences and captions of Nyström's story, from its measured numbers."""

from collections.abc import Sequence

import numpy as np

from app.words.i18n import N_, _, _n
from attention_core.experiments.nystrom_inverse import InverseRow
from attention_core.formatting import number, percent
from pages.inside.headline import MIN_SHOWN_ERROR

EQUAL_RATIO = 1.02
"""Errors within this ratio count as equal."""
SMALL_ERROR = 0.1
"""Relative errors up to this count as small."""


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


def product_headline(*, averaged: bool) -> str:
    """Return the sentence about the three factors; ``averaged`` if there are fewer landmarks than tokens."""
    if averaged:
        return _("Nyström replaces the softmax matrix with a product of three smaller ones.")
    return _("Nyström replaces the softmax matrix with a product of three others.")


def shown_error(error: float) -> str:
    """Return an error as text; it is 0% if only rounding causes the error."""
    return percent(round(error, 5))


def inverse_benefit(without: float, error: float) -> str:
    """Return the sentence about the effect of the inverse Z on the matrix error.

    Args:
        without: the error without Z.
        error: the error with Z.
    """
    values = {"without": shown_error(without), "error": shown_error(error)}
    if values["without"] == values["error"]:
        return _("In this head, Z hardly changes the matrix error: {error}, as without Z.", **values)
    if error < without:
        return _("In this head, Z makes the matrix error smaller: {error} instead of {without} without Z.", **values)
    return _("In this head, Z makes the matrix error larger: {error} instead of {without} without Z.", **values)


def inverse_count(errors: Sequence[tuple[float, float]]) -> str:
    """Return the sentence about the heads in which the inverse Z lowers the matrix error; empty for one head.

    Args:
        errors: the error without Z and the error with Z, for each head.
    """
    heads = len(errors)
    lowered = sum(error < without and shown_error(error) != shown_error(without) for without, error in errors)
    if heads == 1:
        return ""
    if lowered == heads:
        return _("Z lowers the error in all {heads} heads.", heads=heads)
    if not lowered:
        return _("Z lowers the error in no head.")
    return _("Z lowers the error in {lowered} of {heads} heads.", lowered=lowered, heads=heads)


def inverse_effect(without: float, error: float, largest: float, *, averaged: bool) -> str:
    """Return why the inverse Z increases the matrix error; empty if it does not.

    Args:
        without: the error without Z.
        error: the error with Z.
        largest: the largest entry of Z in absolute value.
        averaged: whether there are fewer landmarks than tokens.
    """
    harms = without < error and shown_error(without) != shown_error(error)
    if not harms or not averaged or largest <= 1:
        return ""
    return _(
        "Averaging tokens causes errors in L and R; the large entries of Z (up to ±{largest}) amplify these errors.",
        largest=number(largest),
    )


def negative_weights(weights: np.ndarray) -> str:
    """Return what the orange entries of a Nyström matrix are; empty without negative entries."""
    if not (weights < 0).any():
        return ""
    return _("Orange entries of A are negative weights, which softmax never has. They come from negative entries of Z.")


def blur_sentence(query: float, key: float) -> str:
    """Return what averaging does to the factors L and R.

    Args:
        query: share of the variance of the queries that averaging discards.
        key: share of the variance of the keys.
    """
    text = (
        N_(
            "Averaging blurs the factors L and R: it discards {query:.0%} of the variance of the queries and {key:.0%} "
            "of the variance of the keys."
        )
        if round(100 * max(query, key))
        else N_("Averaging discards less than 0.5% of the variance of the queries and of the keys.")
    )
    return _(text, query=query, key=key)


def sized(meaning: str, factor: np.ndarray) -> str:
    """Return the caption of a factor: what it is, and on a second line its size."""
    return f"{meaning}\n{' × '.join(f'{side:,}' for side in factor.shape)}"


def error_caption(error: float) -> str:
    """Return the caption of a product of factors with its matrix error."""
    return _("matrix error {error}", error=percent(error))


def inverse_sentence(rows: Sequence[InverseRow], *, averaged: bool) -> tuple[str, str]:
    """Return whether a more exact inverse gives a better matrix, as a headline, and the numbers or the reason.

    Args:
        rows: one row per number of iterations, followed by the exact inverse.
        averaged: whether there are fewer landmarks than tokens.
    """
    *iterated, exact = (row.error for row in rows)
    if max(exact, *iterated) < MIN_SHOWN_ERROR:
        text = _(
            "With each number of iterations, and with the exact inverse, the error of the attention matrix A is less "
            "than {small:.1%}.",
            small=MIN_SHOWN_ERROR,
        )
        return text, ""
    best = int(np.argmin(iterated))
    values = {"error": percent(iterated[best]), "exact": percent(exact)}
    is_worse = exact > EQUAL_RATIO * iterated[best]
    if averaged and is_worse and exact > SMALL_ERROR:
        text = _n(
            "The exact inverse is worse: the error of A is {exact}, instead of {error} after {n} iteration.",
            "The exact inverse is worse: the error of A is {exact}, instead of {error} after {n} iterations.",
            n=best + 1,
            **values,
        )
        return text, _("Inverting small singular values amplifies the error from averaging tokens into landmarks.")
    if not averaged:
        text = _("No tokens are averaged, so the inverse is the only source of error.")
    elif is_worse:
        text = _("Stopping the iteration early gives a smaller error than the exact inverse. Both errors are small.")
    elif exact > SMALL_ERROR:
        text = _("The error comes from averaging tokens into landmarks, not from the inverse.")
    else:
        text = _(
            "A more exact inverse gives a smaller matrix error, because averaging into landmarks causes little "
            "error that the inverse could amplify."
        )
    return text, _n(
        "With the iteration, the error of A is smallest after {n} iteration ({error}). With the exact inverse, it is "
        "{exact}.",
        "With the iteration, the error of A is smallest after {n} iterations ({error}). With the exact inverse, it is "
        "{exact}.",
        n=best + 1,
        **values,
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
            "Z is the exact inverse of M here. After {n} iteration, an approximate inverse would be almost exact "
            "(factor 0.9 or more) for {done} of the {m} singular vectors. The smallest singular value is {least}.",
            "Z is the exact inverse of M here. After {n} iterations, an approximate inverse would be almost exact "
            "(factor 0.9 or more) for {done} of the {m} singular vectors. The smallest singular value is {least}.",
            n=iterations,
            **values,
        )
    return _n(
        "After {n} iteration, Z is almost exact (factor 0.9 or more) for {done} of the {m} singular vectors of M. The "
        "smallest singular value is {least}.",
        "After {n} iterations, Z is almost exact (factor 0.9 or more) for {done} of the {m} singular vectors of M. The "
        "smallest singular value is {least}.",
        n=iterations,
        **values,
    )
