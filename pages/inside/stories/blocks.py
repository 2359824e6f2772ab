"""Block selection, explained on the Inside page: how key blocks are chosen, and how much attention weight is missed."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from app.words.i18n import N_, _, _n, paragraph
from pages.inside import pictures
from pages.inside.pictures import Curve, symbol
from pages.inside.pooling import block_names
from pages.inside.reference import compare_with_reference
from pages.inside.story import HeadData, LazyStep, Step, lazy_step
from pages.inside.tokens import coloured_text

MIN_MISSED = 0.1
"""A block is mentioned if the share of queries that should select it exceeds the share that do by at least this."""
MIN_MASS = 0.0005
"""Shares of the softmax weight below this value would be printed as 0.0%."""
OWN_BLOCK, CORRECT, WRONG, MISSED, NO_COLOUR = 0, 2, 1, 3, -1
"""Colours of the tokens: own block, correctly chosen, wrongly chosen, missed; ``NO_COLOUR`` has no colour."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The selected blocks of each query, arrays ``[n, blocks]``.

    Attributes:
        own_block: the block that contains the query, ``bool``.
        chosen: the blocks selected by the score, ``bool``.
        best: as many blocks, chosen by the largest ``mass``, ``bool``.
        mass: the sum of full softmax's weights on the keys of each block.
    """

    own_block: np.ndarray
    chosen: np.ndarray
    best: np.ndarray
    mass: np.ndarray

    def mass_on(self, blocks: np.ndarray) -> np.ndarray:
        """Return the softmax mass on the given blocks for each query, ``[n]``."""
        result: np.ndarray = (self.mass * blocks).sum(-1)
        return result

    @property
    def lost(self) -> np.ndarray:
        """The mass that each query loses because its blocks are chosen by score, ``[n]``."""
        return self.mass_on(self.best) - self.mass_on(self.chosen)

    @property
    def loses(self) -> bool:
        """True if some query loses mass."""
        return bool(self.lost.max() >= MIN_MASS)

    @property
    def worst_query(self) -> int:
        """The query that loses most mass; the last one in a tie."""
        return int(len(self.lost) - 1 - self.lost[::-1].argmax())


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: block scores, chosen blocks, missed mass, comparison with the reference."""
    parts, size = data.parts, data.setting("block")
    blocks = np.arange(parts["mass"].shape[-1])
    own_block = np.arange(len(parts["mass"]))[:, None] // size == blocks
    choice = Choice(own_block, parts["chosen"], parts["best"], parts["mass"].astype(np.float64))
    return (_scores(data, choice), _chosen(data, choice), _missed(data, choice), compare_with_reference(data))


def _panel(
    data: HeadData, title: str, values: np.ndarray, caption: str = "", mark: int | None = None
) -> pictures.Panel:
    return pictures.panel(title, values, data.labels, block_names(data), column=_("block"), caption=caption, mark=mark)


@lazy_step(N_("Block scores"))
def _scores(data: HeadData, choice: Choice) -> Step:
    scores = data.parts["scores"]
    selectable = np.isfinite(scores)

    def draw(key: str) -> None:
        mass = _panel(data, _("Softmax weight per block"), np.where(choice.own_block | selectable, choice.mass, np.nan))
        own = _("own block: always selected")
        score = _panel(data, _("Score"), np.where(selectable, scores, np.nan), own if data.causal else "", mark=0)
        panels = (score, mass) if selectable.any() else (mass,)
        masked = None if data.causal else own  # With a causal mask, later blocks are hatched too.
        pictures.board(f"{key}.scores", *panels, pictures.reference_panel(data), scale="panel", masked=masked)

    n, blocks = choice.mass.shape
    return Step(
        mechanism=_(
            "The keys are split into blocks. A score for each block estimates how much softmax weight the "
            "block would receive."
        ),
        formula=symbol(0, "s")
        + {
            "mean key": r"(q, b) = \frac{q^\top \bar k_b}{\sqrt d}",
            "second order": r"(q, b) = \frac{q^\top \bar k_b}{\sqrt d} + \frac{q^\top \Sigma_b\, q}{2 d}",
            "bound": r"(q, b) = \frac{1}{\sqrt d} \sum_c \max\left(q_c \max_{j \in b} k_{jc},\; "
            r"q_c \min_{j \in b} k_{jc}\right)",
            "random indexer": r"(q, b) = \max_{j \in b} \frac{(R q)^\top (R k_j)}{\sqrt d}",
            "true mass": r"(q, b) = \log \sum_{j \in b} e^{q^\top k_j / \sqrt d}",
        }[data.setting("score")],
        shapes={"s": (n, blocks), "K": (n, data.qkv.k.shape[-1])},
        findings=paragraph(
            score_sentence(n, blocks, agreement(scores, choice.mass)),
            _missed_key(data, choice, selectable) if data.setting("score") == "mean key" else "",
        ),
        draw=draw,
    )


def _missed_key(data: HeadData, choice: Choice, selectable: np.ndarray) -> str:
    """Return ``missed_key_sentence`` for the block of the key with the most weight; empty if no query can select it."""
    key = int(data.reference.sum(0).argmax())
    block = key // data.setting("block")
    queries = selectable[:, block]
    if not queries.any():
        return ""
    weights = data.reference[queries]
    return missed_key_sentence(
        block_names(data)[block],
        data.token(key),
        float(weights[:, key].sum() / max(choice.mass[queries, block].sum(), np.finfo(float).tiny)),
        float(choice.best[queries, block].mean()),
        float(choice.chosen[queries, block].mean()),
    )


def missed_key_sentence(block: str, token: str, share_: float, best: float, chosen: float) -> str:
    """Return the sentences about a block that mean keys select too rarely, because one key has most of its weight.

    Args:
        block: the name of the block.
        token: the token of the key.
        share_: the key's share of the block's softmax weight.
        best: the share of the queries for which the block is among the best ones; only queries that can select it
            count.
        chosen: the share of these queries that select the block by score.
    """
    if share_ <= 0.5 or best - chosen < MIN_MISSED:
        return ""
    return _(
        "The mean key hides “{token}”, the key with most of the weight of block {block}. {chosen:.0%} of the queries "
        "that can select this block do so by score; by softmax weight, {best:.0%} would.",
        best=best,
        block=block,
        chosen=chosen,
        token=token,
    )


def agreement(scores: np.ndarray, mass: np.ndarray) -> float | None:
    """Return how often the score ranks two selectable blocks of a query in the order of their softmax mass.

    Args:
        scores: the score of each block for each query, ``[n, blocks]``; not finite if it cannot be selected.
        mass: the softmax mass on each block for each query, ``[n, blocks]``.

    Returns:
        The share of correctly ranked pairs, over all queries; None if no query can choose between two blocks, or if
        all such blocks have the same mass.
    """
    right = pairs = 0
    for each, masses in zip(scores, mass, strict=True):
        selectable = np.flatnonzero(np.isfinite(each))
        i, j = np.triu_indices(len(selectable), 1)
        better = np.sign(masses[selectable][i] - masses[selectable][j])
        right += int((better * np.sign(each[selectable][i] - each[selectable][j]) > 0)[better != 0].sum())
        pairs += int((better != 0).sum())
    return right / pairs if pairs else None


def score_sentence(n: int, blocks: int, share_: float | None) -> str:
    """Return the sentence about the number of blocks and how well the score ranks them.

    Args:
        n: number of tokens.
        blocks: number of blocks.
        share_: the result of ``agreement``.
    """
    if share_ is None and blocks > 2:
        return _(
            "{n} tokens form {blocks} blocks. For each query, all other blocks that it can select have the same "
            "softmax weight.",
            n=n,
            blocks=blocks,
        )
    if share_ is None:
        return _n(
            "The tokens form only {n} block, so there are no other blocks to select from.",
            "The tokens form only {n} blocks, so no query can choose between two blocks other than its own.",
            n=blocks,
        )
    return _(
        "{n} tokens form {blocks} blocks. In **{agrees:.0%}** of all comparisons between two blocks, the "
        "block with more softmax weight has the higher score (random scores: 50%).",
        n=n,
        blocks=blocks,
        agrees=share_,
    )


def _chosen(data: HeadData, choice: Choice) -> Step:
    choices, matches = int(choice.best.sum()), int((choice.chosen & choice.best).sum())
    query = choice.worst_query
    kinds = np.select(
        [choice.own_block[query], choice.chosen[query] & choice.best[query], choice.chosen[query], choice.best[query]],
        [OWN_BLOCK, CORRECT, WRONG, MISSED],
        NO_COLOUR,
    )

    colours = _(
        "Blue: its own block. Green: blocks selected correctly. Orange: blocks selected wrongly. Purple: blocks that "
        "should have been selected. Vertical lines separate blocks."
    )

    def draw(key: str) -> None:
        block_of = np.arange(len(data.labels)) // data.setting("block")
        hidden = {j for j in range(len(block_of)) if not data.visible[query, j]}
        st.html(
            coloured_text(
                data.labels,
                [NO_COLOUR if j in hidden else int(kinds[b]) for j, b in enumerate(block_of)],
                notes=[_("token {j}: softmax weight {x:.1%}", j=j, x=x) for j, x in enumerate(data.reference[query])],
                borders=set(range(data.setting("block"), len(block_of), data.setting("block"))),
            )
        )
        st.caption(paragraph(query_sentence(data.token(query), query, loses=choice.loses), colours))
        pictures.board(
            f"{key}.choice",
            _panel(data, _("Selected blocks"), np.where(choice.chosen | choice.own_block, choice.mass, np.nan)),
            _panel(data, _("Best blocks"), np.where(choice.best | choice.own_block, choice.mass, np.nan)),
            masked=_("not selected"),
        )

    return Step(
        title=_("Selection"),
        mechanism=_(
            "The blocks selected by score are compared with the best selection: as many blocks with the largest "
            "softmax weight."
        ),
        formula=r"S_i = b(i) \cup \operatorname{top}_m \{s(q_i, b) : b < b(i)\}"
        if data.causal
        else r"S_i = b(i) \cup \operatorname{top}_m \{s(q_i, b) : b \ne b(i)\}",
        shapes={"S": choice.mass.shape},
        findings=choice_sentence(choices, matches, causal=data.causal),
        draw=draw,
    )


def query_sentence(token: str, i: int, *, loses: bool) -> str:
    """Return the sentence about the query whose blocks are drawn; ``loses`` if some query loses softmax weight."""
    if loses:
        return _(
            "Query “{query}” (token {i}) loses the most softmax weight compared with the best selection.",
            query=token,
            i=i,
        )
    return _(
        "No query loses softmax weight compared with the best selection. This is query “{query}” (token {i}).",
        query=token,
        i=i,
    )


def choice_sentence(choices: int, matches: int, *, causal: bool) -> str:
    """Return the sentence about how many blocks chosen by score would also be chosen by softmax mass.

    Args:
        choices: number of choices over all queries.
        matches: number of choices that the softmax mass would make too.
        causal: whether a query can choose earlier blocks only.
    """
    if not choices:
        return _("No other block is selected, so every query attends only to its own block.")
    text = _(
        "**{same:,}** of the {asked:,} selected blocks ({share:.0%}) are also among the blocks with the largest "
        "softmax weight.",
        same=matches,
        asked=choices,
        share=matches / choices,
    )
    if causal:
        text = paragraph(text, _("With the causal mask, only blocks before the query's own block can be selected."))
    return text


def _missed(data: HeadData, choice: Choice) -> Step:
    own, chosen, best = (choice.mass_on(choice.own_block), choice.mass_on(choice.chosen), choice.mass_on(choice.best))
    positions = list(range(len(own)))
    return Step(
        title=_("Captured weight"),
        mechanism=_("A query ignores the blocks that are not selected, so their softmax weight is lost."),
        formula=r"\text{captured}_i = \sum_{b \in S_i} \sum_{j \in b} P_{ij},\qquad "
        r"P = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt d}\right)",
        shapes={"P": data.reference.shape},
        findings=missed_sentence(
            own.mean(), (own + chosen).mean(), (own + best).mean(), selects=bool(choice.chosen.any())
        ),
        draw=lambda key: pictures.lines(
            [
                Curve(_("own block"), positions, (100 * own).tolist(), colour=0, markers=False),
                Curve(_("own and selected blocks"), positions, (100 * (own + chosen)).tolist(), colour=1),
                Curve(
                    _("own and best blocks"),
                    positions,
                    (100 * (own + best)).tolist(),
                    colour=2,
                    dash="dash",
                    hollow=True,
                ),
            ],
            key=key,
            x_title=_("query"),
            y_title=_("softmax weight captured, %"),
            mark=(choice.worst_query, _("largest loss")) if choice.loses else None,
            alt=_("Lines: the share of the softmax weight on the blocks that each query attends to"),
        ),
    )


def missed_sentence(own_mass: float, chosen: float, best: float, *, selects: bool = True) -> str:
    """Return the sentence that compares the softmax mass of the chosen blocks with the most that is possible.

    The first three arguments are means over queries.

    Args:
        own_mass: the mass on the query's own block.
        chosen: the mass on the own block and the chosen blocks.
        best: the mass on the own block and an equal number of blocks with the largest mass.
        selects: whether any query selects another block.
    """
    text = _("On average, a query's own block holds {own:.1%} of the query's softmax weight.", own=own_mass)
    if not selects:
        return paragraph(text, _("No other block is selected, so every query attends only to its own block."))
    if best - own_mass < MIN_MASS:
        return paragraph(
            text, _("Even the best selection of the same number of other blocks would add almost nothing.")
        )
    return paragraph(
        text,
        _(
            "Together with the selected blocks, it holds **{chosen:.1%}**. With the best possible selection, this "
            "share would be {best:.1%}, so the actual selection achieves {share:.0%} of the possible increase.",
            chosen=chosen,
            best=best,
            share=(chosen - own_mass) / (best - own_mass),
        ),
    )
