"""Story of the double softmax over landmarks: two maps without an inverse, compared with Nyström's inverse."""

import numpy as np

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import View
from app.words.i18n import N_, _, paragraph
from attention_core.analysis.low_rank import factors
from attention_core.formatting import at_most
from pages.inside import landmarks, pictures
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: landmarks, the two maps, the effect of an inverse, comparison with the reference."""
    rank = _("Its rank is at most m = {m}, the number of landmarks.", m=seen.parts["left"].shape[-1])
    return landmarks.which(seen), _maps(seen), _inverse(seen), beside_reference(seen, rank)


def _maps(seen: Seen) -> Step:
    left, right = seen.parts["left"], seen.parts["right"]
    product = factors.product(left, right)
    (n, m), most = left.shape, left.mean(0)
    text = _(
        "Queries look at {m} landmarks of the keys, {m} landmarks of the queries look at all {n} keys; the key "
        "landmark looked at most holds {share:.0%} of all weight. Rows of both maps sum to one, so rows of their "
        "product do (none is further off than {off}), and nothing is negative: no inverse is needed.",
        m=m,
        n=n,
        share=most.max(),
        off=at_most(np.abs(product.sum(-1) - 1).max()),
    )

    def draw(key: str) -> None:
        whole = pictures.pairs(seen, _("Product L R"), product)
        pictures.board(f"{key}.maps", *landmarks.sides(seen), whole)

    return Step(
        title=_("Two maps"),
        formula=r"L = S\!\left(\tfrac{Q \tilde K^\top}{\sqrt d}\right),\quad "
        r"R = S\!\left(\tfrac{\tilde Q K^\top}{\sqrt d}\right),\quad "
        r"\sum_j (L R)_{ij} = \sum_c L_{ic} \sum_j R_{cj} = \sum_c L_{ic} = 1",
        shapes={"L": left.shape, "R": right.shape, "L R": product.shape},
        sentence=text,
        draw=draw,
    )


@later(N_("What Nyström adds"))
def _inverse(seen: Seen) -> Step:
    """Build the step that inserts Nyström's inverse between the two maps of the same landmarks."""
    view = View(source=seen.source, head=seen.head, causal=False, special=True)
    nystrom = ac.get("nystrom", landmarks=seen.setting("landmarks"), method=seen.setting("method"))
    own, other, exact = (cached.matrix(view, each) for each in (seen.attention, nystrom, ac.get("softmax")))
    n, m = seen.parts["left"].shape
    blur = _(
        "Two softmaxes in a row blur: a query spreads like {own:.1f} equally weighted keys, in softmax like "
        "{exact:.1f}. Nyström puts the inverse of the landmarks' own map between them, to take one of the two back.",
        own=own.passport.perplexity,
        exact=exact.passport.perplexity,
    )
    errors = own.passport.relative_error, other.passport.relative_error

    def draw(key: str) -> None:
        pictures.board(
            f"{key}.matrices",
            pictures.pairs(seen, _("Landmarks L R"), own.weights, _("no inverse")),
            pictures.pairs(seen, _("Nyström L M⁺ R"), other.weights, _("the same landmarks")),
            pictures.pairs(seen, _("Softmax"), exact.weights, _("what Nyström approximates")),
        )

    return Step(
        formula=r"A = L R \qquad \text{and} \qquad A_{\text{Nyström}} = L M^{+} R,\quad "
        r"M = S\!\left(\tfrac{\tilde Q \tilde K^\top}{\sqrt d}\right)",
        shapes={"L": (n, m), r"M^{+}": (m, m), "R": (m, n)},
        sentence=paragraph(blur, help_sentence(*errors, other.passport.negative_mass)),
        draw=draw,
    )


def help_sentence(own: float, other: float, negative: float) -> str:
    """Return the sentence that says if an inverse between the two maps brings them closer to softmax.

    Args:
        own: the error without an inverse.
        other: the error with the inverse.
        negative: the share of negative mass with the inverse.
    """
    words = {"own": own, "other": other, "negative": negative}
    if other < own:
        return _(
            "Here it helps: its matrix is off by {other:.0%} in place of {own:.0%}, at the price of {negative:.1%} "
            "negative mass.",
            **words,
        )
    return _(
        "**Here it does not help**: its matrix is off by {other:.0%} in place of {own:.0%}, and {negative:.1%} of its "
        "mass is negative.",
        **words,
    )
