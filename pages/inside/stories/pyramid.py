"""Story of pyramid pooling: keys that average the whole text, its parts, and the parts of these."""

from dataclasses import replace

from app.words.i18n import _
from attention_core.analysis.masks import provenance
from pages.inside import pooling
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: pool on every level, attend, blur, leak, comparison with the reference."""
    P, left = seen.parts["provenance"], seen.parts["left"]
    rows = pooling.levels(provenance.spans(P))
    cover = replace(
        pooling.cover(seen),
        title=_("Pool on every level"),
        sentence=_(
            "{n} tokens become **{m} keys** on {count} levels: {sizes} pools of up to {tokens} tokens. Their numbers "
            "are 1, 3, 6, 8 times {levels}, the setting “levels”, but none is above {n}. Every token is in one pool of "
            "each level.",
            n=P.shape[1],
            m=P.shape[0],
            count=len(rows),
            sizes=", ".join(str(len(row)) for row in rows),
            tokens=", ".join(str(-(-P.shape[1] // len(row))) for row in rows),
            levels=seen.setting("levels"),
        ),
    )
    shares = ", ".join(f"{left[:, row].sum(-1).mean():.0%}" for row in rows)
    look = pooling.look(seen, _("From the coarsest level to the finest a query gives {shares}.", shares=shares))
    return (cover, look, pooling.blur(seen), pooling.leak(seen), beside_reference(seen))
