"""Story of PaTH: each token between a key and a query removes one direction from the key before their product."""

import numpy as np

from app.words.i18n import _, paragraph
from attention_core.analysis.low_rank.factors import cosines, lengths, product
from attention_core.formatting import percent
from pages.inside import pictures
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: overlap of directions, removed parts, remaining products, comparison with the reference."""
    ending = _("{share:.0%} of its weights are negative.", share=(seen.weights[seen.visible] < 0).mean())
    return _directions(seen), _taken(seen), _left(seen), beside_reference(seen, ending)


def _before(seen: Seen) -> np.ndarray:
    """Return the mask of each token and the tokens before it, ``bool [n, n]``."""
    return np.tri(len(seen.weights), k=-1, dtype=bool)


def _directions(seen: Seen) -> Step:
    directions, before = seen.parts["directions"], _before(seen)
    shared = cosines(directions, directions)
    return Step(
        title=_("A direction for each token"),
        formula=r"H_t = I - \beta\, w_t w_t^\top,\qquad \lVert w_t \rVert = 1",
        shapes={"W": directions.shape},
        sentence=directions_sentence(shared[before], seen.setting("strength")),
        draw=lambda key: pictures.board(
            key, pictures.earlier(seen, "W Wᵀ", shared, row=_("token")), unit=_("cosine"), diverging=True
        ),
    )


def directions_sentence(shared: np.ndarray, strength: float) -> str:
    """Return the sentence about what each token removes, and how much the directions overlap.

    Args:
        shared: the cosine of every two directions; empty if there is only one token.
        strength: β.
    """
    if strength == 0:
        text = _("At β = 0 no token takes anything out: whatever passes stays as it is.")
    elif strength == 1:
        text = _("Each token takes out of all that passes what lies along its own direction w.")
    elif strength == 2:
        text = _("Each token turns over what lies along its own direction w of all that passes: a reflection.")
    else:
        text = _(
            "Of all that passes each token takes {strength:.0%} of what lies along its own direction w.",
            strength=strength,
        )
    if not shared.size:
        return paragraph(text, _("There is one token only: nothing passes it."))
    return paragraph(
        text,
        _(
            "Two directions have a cosine of {mean:.2f} on average, without the sign, and of {most:.2f} at most.",
            mean=abs(shared).mean(),
            most=abs(shared).max(),
        ),
    )


def _taken(seen: Seen) -> Step:
    written, before = seen.parts["met"], _before(seen)
    taken = product(seen.parts["inverse"], written)
    return Step(
        title=_("What each takes out"),
        formula=r"T\,\beta\,(W K^\top \odot M^-),\qquad T = \left(I + \beta\, W W^\top \odot M^-\right)^{-1}",
        shapes={r"W K^\top": written.shape, "T": seen.parts["inverse"].shape},
        sentence=taken_sentence(written[before], taken[before]),
        draw=lambda key: pictures.board(
            key,
            *(
                pictures.earlier(seen, title, matrix, row=_("token on the way"), column=_("key"))
                for title, matrix in ((_("Of the key as written"), written), (_("Of what is left of it"), taken))
            ),
            unit=_("taken out"),
            diverging=True,
        ),
    )


def taken_sentence(written: np.ndarray, taken: np.ndarray) -> str:
    """Return the sentence that compares what tokens would remove of an original key with what they actually remove.

    Args:
        written: for every key and later token, the part the token would remove of the original key.
        taken: the part the token removes of the key that earlier tokens have already changed.
    """
    if not written.size:
        return _("There is one token only: no key passes another.")
    as_written, left = abs(written).mean(), abs(taken).mean()
    if not as_written:
        return _("Nothing is taken out of any key.")
    values = {"written": percent(as_written), "left": percent(left)}
    if left < as_written:
        return _(
            "Of a key as it was written a later token would take {written} of its length on average, without the sign. "
            "It takes {left}: those before it have taken some of that already.",
            **values,
        )
    return _(
        "Of a key as it was written a later token would take {written} of its length on average, without the sign. It "
        "takes {left}: those before it have left no less along its direction.",
        **values,
    )


def _left(seen: Seen) -> Step:
    read = seen.parts["read"]
    on_the_way = product(seen.parts["turned"], product(seen.parts["inverse"], seen.parts["met"]))
    plain, left = (matrix[seen.visible] for matrix in (read, seen.weights))
    size, whole = lengths(np.stack([left, plain]))
    way = (
        _("Between key j and query i stand the tokens j + 1 to i.")
        if seen.causal
        else _("As no future is hidden, every query reads what all tokens have left: a key has all behind it to pass.")
    )
    return Step(
        title=_("What is left of a product"),
        formula=r"q_i^\top H_i H_{i-1} \cdots H_{j+1}\, k_j"
        if seen.causal
        else r"q_i^\top H_n H_{n-1} \cdots H_{j+1}\, k_j",
        shapes={"Q": seen.parts["queries"].shape, "K": seen.parts["keys"].shape, "A": read.shape},
        sentence=paragraph(left_sentence(size, whole, float((plain * left < 0).mean())), way),
        draw=lambda key: pictures.board(
            key,
            pictures.pairs(seen, _("Without the way"), read),
            pictures.pairs(seen, _("Taken on the way"), on_the_way),
            pictures.pairs(seen, _("What is left"), seen.weights),
            unit=_("product"),
            diverging=True,
        ),
    )


def left_sentence(size: float, whole: float, turned: float) -> str:
    """Return the sentence about how the tokens in between change the query-key products.

    Args:
        size: total size of the remaining products over all pairs.
        whole: total size of the original products.
        turned: the share of products whose sign changes.
    """
    if not whole:
        return _("Every product of a query with a key is zero, whatever lies on the way.")
    return _(
        "Of the size of all products of a query with a key the way leaves {share}; {turned:.0%} of them change their "
        "sign.",
        share=percent(size / whole),
        turned=turned,
    )
