"""Story of the Funnel transformer: neighbouring queries are averaged, and all of them receive the common output."""

from dataclasses import replace

from app.words.i18n import _
from attention_core.analysis.low_rank import factors
from attention_core.analysis.masks import provenance
from pages.inside import pictures, pooling
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: average, attend, blur, leak, comparison with the reference."""
    return _average(seen), _ask(seen), pooling.blur(seen, queries=True), _leak(seen), beside_reference(seen)


def _average(seen: Seen) -> Step:
    """Build the step that shows which queries are averaged."""
    P = seen.parts["provenance"]
    m, n = P.shape
    return replace(
        pooling.cover(seen, what=_("query")),
        title=_("Average the queries"),
        formula=r"\tilde Q = P Q,\qquad P \in \mathbb{R}^{m \times n}",
        shapes={"P": (m, n), r"\tilde Q": (m, seen.qkv.q.shape[-1])},
        sentence=_(
            "{n} queries become **{m}**: the first token, “{first}”, asks alone; the widest of the others averages "
            "{pool}. Keys and values stay {n}.",
            n=n,
            m=m,
            first=seen.token(0),
            pool=pooling.told(seen, pooling.widest(provenance.spans(P))),
        ),
    )


def _ask(seen: Seen) -> Step:
    """Build the step that shows the weights of each averaged query."""
    right, pools = seen.parts["right"], provenance.spans(seen.parts["provenance"])
    shared = [r for r, (first, last) in enumerate(pools) if last > first] or list(range(len(pools)))
    r = max(shared, key=lambda r: right[r].max())
    key_token, (first, last) = right[r].argmax(), pools[r]
    own = seen.reference[first : last + 1, key_token]

    def draw(key: str) -> None:
        title, common = _("Right factor: one row per common query"), _("common query")
        looks = pictures.panel(title, right, pooling.pool_names(seen), seen.labels, row=common)
        pictures.board(f"{key}.right", looks)

    return Step(
        title=_("Look as one"),
        formula=r"R = \operatorname{softmax}\left(\frac{\tilde Q K^\top}{\sqrt d}\right) \in \mathbb{R}^{m \times n}",
        shapes={r"\tilde Q": (len(pools), seen.qkv.q.shape[-1]), "K": seen.qkv.k.shape[1:], "R": right.shape},
        sentence=_(
            "The firmest common look: {pool} puts {weight:.0%} on **“{token}”** (token {j}). On their own, under "
            "softmax, its tokens give that key {low:.0%} to {high:.0%}.",
            pool=pooling.told(seen, (first, last)),
            weight=right[r, key_token],
            token=seen.token(key_token),
            j=key_token,
            low=own.min(),
            high=own.max(),
        ),
        draw=draw,
    )


@later(pooling.LEAKS)
def _leak(seen: Seen) -> Step:
    """Build the step that shows which share of each query comes from later tokens of its pool."""
    asked = factors.product(seen.parts["left"], seen.parts["provenance"])
    shares = provenance.future_mass(asked)
    pools = [pool for pool in provenance.spans(seen.parts["provenance"]) if pool[1] > pool[0]]
    words = _("Every query holds a single token: here nothing is averaged, and nothing leaks.")
    if pools:
        first, last = pooling.widest(pools, len(asked))
        words = _(
            "Tokens {first} to {last} get one answer. For token {first}, **“{query}”**, {share:.0%} of the question is "
            "asked by the tokens after it, up to “{token}”, {distance} ahead: hiding later keys does not undo that. "
            "On average {mean:.0%} of a question comes from the future.",
            first=first,
            last=last,
            query=seen.token(first),
            token=seen.token(last),
            distance=last - first,
            share=shares[first],
            mean=shares.mean(),
        )
    title, unit = _("Who asks each question"), _("share of the question")
    return pooling.leaks(seen, asked, words, _("asks together with it"), title, unit)
