"""Story of native sparse attention: block means, three branches, and their gated sum."""

import numpy as np

from app.words.i18n import _, _n, paragraph
from pages.inside import pictures
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: block means, the three branches, comparison with the reference."""
    return _outline(seen), _looks(seen), beside_reference(seen, _(seen.attention.variant.note))


def _outline(seen: Seen) -> Step:
    outline, size, n = seen.parts["outline"], seen.setting("block"), len(seen.weights)
    ends = [min(start + size, n) - 1 for start in range(0, n, size)]
    whole = np.array(ends) <= np.arange(n)[:, None] if seen.causal else np.ones(outline.shape, bool)
    if seen.causal and n % size:
        whole[:, -1] = False  # The mean of an incomplete last block is hidden from all queries.
    names = [
        f"{start}–{end}" if end > start else f"{start}" for start, end in zip(range(0, n, size), ends, strict=True)
    ]

    def draw(key: str) -> None:
        if whole.any():
            shown = np.where(whole, outline, np.nan)
            pictures.board(key, pictures.panel(_("Outline"), shown, seen.labels, names, column=_("block")))

    return Step(
        title=_("The text in outline"),
        formula=r"\operatorname{softmax}\left(\frac{Q \bar K^\top}{\sqrt d}\right),\quad "
        r"\bar k_b = \frac{1}{|b|} \sum_{j \in b} k_j",
        shapes={"Q": (n, seen.qkv.k.shape[-1]), r"\bar K": (len(ends), seen.qkv.k.shape[-1])},
        sentence=outline_sentence(n, len(ends), int((~whole.any(-1)).sum())),
        draw=draw,
    )


def outline_sentence(n: int, blocks: int, before: int) -> str:
    """Return the sentence about the block means and the queries that see no mean.

    Args:
        n: number of tokens.
        blocks: number of blocks.
        before: number of queries before the end of the first block.
    """
    return paragraph(
        _n(
            "{tokens} tokens make {n} block with one mean key; all of them get alike what a query gives to that.",
            "{tokens} tokens make {n} blocks with one mean key each; all tokens of a block get alike what a query "
            "gives to its mean.",
            n=blocks,
            tokens=n,
        ),
        _n(
            "A mean is there once its last token has come: **{n}** query has none to look at.",
            "A mean is there once its last token has come: **{n}** queries have none to look at.",
            n=before,
        )
        if before
        else "",
    )


def _looks(seen: Seen) -> Step:
    found = [seen.parts[name] for name in ("compressed", "selected", "near")]
    gates = [seen.setting(f"gate_{name}") for name in ("compressed", "selected", "window")]
    titles = (_("Means of blocks"), _("Blocks in full"), _("Near"))
    captions = [_("gate {gate:.2g}", gate=gate) for gate in gates]
    seen_pairs = [100 * (matrix > 0)[seen.visible].mean() for matrix in found]
    return Step(
        title=_("Three looks"),
        formula=r"A = g_1 A_1 + g_2 A_2 + g_3 A_3",
        shapes={"A_1, A_2, A_3": found[0].shape},
        sentence=looks_sentence(*seen_pairs, total=sum(gates)),
        draw=lambda key: pictures.board(
            key,
            *(
                pictures.pairs(seen, title, matrix, caption)
                for title, matrix, caption in zip(titles, found, captions, strict=True)
            ),
        ),
    )


def looks_sentence(compressed: float, selected: float, near: float, *, total: float) -> str:
    """Return the sentence about the share of pairs each branch covers, and the sum of a row.

    Args:
        compressed: per cent of the allowed pairs that get a weight from the block means.
        selected: per cent that get a weight from the fully read blocks.
        near: per cent that get a weight from the window.
        total: the sum of the three gates.
    """
    return _(
        "Of the pairs that may look at each other, the means of blocks give a weight to {compressed:.0f}%, the blocks "
        "in full to {selected:.0f}% and the window to {near:.0f}%. A row in which all three look sums to what their "
        "gates do, **{total:.2f}**: nothing makes these add up to one.",
        compressed=compressed,
        selected=selected,
        near=near,
        total=total,
    )
