"""Sentences of the Model page, computed from the measurements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from app.words.i18n import _, _n, paragraph
from attention_core import registry
from attention_core.experiments.swap import CopyRow, ReadingRow, SwapRow
from attention_core.formatting import number
from attention_core.inputs import models
from attention_core.model_patching import UNIFORM
from pages.model.options import called

SAME = 1.05
"""Largest ratio of perplexities for which a text counts as read as well as before."""
WORSE = 1.5
"""Ratio of perplexities above which a text counts as read much worse, in the Layers view."""
COPIED = 0.2
"""Largest lost share of what copying saves for which copying counts as preserved."""
LOST = 0.8
"""Lost share from which on copying counts as lost."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The measurements of one model.

    Attributes:
        name: name on screen.
        perplexity: perplexity of the text; NaN if it is not known yet.
        copied: loss per copied token in nats, mean over the finished draws; NaN without finished draws.
        first: loss per token on its first occurrence, in nats; NaN if there is no finished draw.
        covered: tokens of the text if the variant attends to all of them as softmax does, so that nothing can change;
            0 otherwise.
    """

    name: str
    perplexity: float
    copied: float
    first: float
    covered: int = 0

    @property
    def complete(self) -> bool:
        """True if both numbers are known."""
        return not (math.isnan(self.perplexity) or math.isnan(self.copied))


def score(name: str, word: str, layers: tuple[int, ...], rows: Sequence[SwapRow]) -> Score:
    """Return the score of one model, given all rows."""
    own = [row for row in rows if (row.word, row.layers) == (word, layers)]
    copies = [row for row in own if isinstance(row, CopyRow)]
    read = next((row for row in own if isinstance(row, ReadingRow)), None)
    return Score(
        name=name,
        perplexity=read.perplexity if read else math.nan,
        covered=read.tokens if read and layers and attends_to_all(word, read.tokens) else 0,
        copied=mean(row.copied for row in copies) if copies else math.nan,
        first=mean(row.first for row in copies) if copies else math.nan,
    )


def attends_to_all(word: str, n: int) -> bool:
    """Return whether a fixed pattern allows every earlier token of a text of ``n`` tokens, as softmax does."""
    if word == UNIFORM:
        return False
    mask = registry.from_word(word).mask(n, causal=True)
    return mask is not None and int(mask.tril().sum()) == n * (n + 1) // 2


def keys_of_last(words: Sequence[str], n: int) -> str:
    """Return how many of ``n`` tokens the last one attends to in each variant with a fixed pattern; empty for none."""
    masks = {word: registry.from_word(word).mask(n, causal=True) for word in words if word != UNIFORM}
    counts = {word: int(mask[-1].sum()) for word, mask in masks.items() if mask is not None}
    if not counts:
        return ""
    return _(
        "The last of {n} tokens attends to: {counts}.",
        n=n,
        counts=", ".join(
            _n("{n} key in {name}", "{n} keys in {name}", n=count, name=called(word)) for word, count in counts.items()
        ),
    )


def headline(original: Score, changed: Sequence[Score]) -> str:
    """Return perplexity and copying before and after the replacement, one line per variant, as Markdown.

    Args:
        original: score of the original model.
        changed: scores of the variants; those that are not complete are left out.
    """
    return "  \n".join(filter(None, (verdict(original, each) for each in changed)))


def setting(*, where: str, tokens: str, title: str) -> str:
    """Return the layers, the model and the text of the measurements, in words.

    Args:
        where: the layers, in words.
        tokens: the number of tokens read, in words.
        title: name of the text.
    """
    model = next(info for info in models.BUILT_IN if info.causal)
    return _(
        "In {where} of {model}, 4-bit quantised, not retrained; on {tokens} of the text “{title}”.",
        where=where,
        model=model.title,
        tokens=tokens,
        title=title,
    )


def verdict(original: Score, each: Score) -> str:
    """Return the effect of one variant on perplexity and copying; empty if either number is missing."""
    if not (original.complete and each.complete):
        return ""
    ratio = each.perplexity / original.perplexity
    lost = lost_share(original, each)
    values = {
        "name": each.name,
        "before": number(original.perplexity, 3),
        "after": number(each.perplexity, 3),
        "ratio": number(ratio, 2),
        "copied": number(each.copied, 2),
        "whole": number(original.copied, 2),
    }
    if each.covered and 1 / SAME <= ratio <= SAME:
        reads = _n(
            "**{name}** attends to the only token of the text, like softmax, so perplexity stays {after}.",
            "**{name}** attends to all {n} tokens of the text, like softmax, so perplexity stays {after}.",
            n=each.covered,
            **values,
        )
    elif ratio > SAME:
        reads = _("With **{name}** perplexity rises from {before} to {after}, {ratio}× the original.", **values)
    elif ratio < 1 / SAME:
        reads = _("With **{name}** perplexity falls from {before} to {after}, {ratio}× the original.", **values)
    else:
        reads = _(
            "With **{name}** perplexity stays within {same:.0%}: from {before} to {after}.", same=SAME - 1, **values
        )
    if lost <= COPIED:
        copies = _("Copying is kept: {copied} nats a token, {whole} in the original.", **values)
    elif lost < LOST:
        copies = _("Copying gets worse: {copied} nats a token, {whole} in the original.", **values)
    else:
        copies = _("Copying is lost: {copied} nats a token, {whole} in the original.", **values)
    return paragraph(reads, copies)


def lost_share(original: Score, each: Score) -> float:
    """Return the lost share of what copying saves: 0 for unchanged copying, 1 for no copying."""
    saves = original.first - original.copied
    return (each.copied - original.copied) / saves if saves > 0 else 0.0


def origin(rows: Sequence[SwapRow]) -> str:
    """Return whether the results were recorded, with the date, or computed now."""
    stamps = sorted({row.recorded for row in rows if row.recorded})
    live = sum(not row.recorded for row in rows)
    if not stamps:
        return _("Live: computed on this machine.")
    text = _("Recorded on {stamps}.", stamps="; ".join(stamps))
    if not live:
        return text
    return paragraph(
        text,
        _n(
            "{n} of {all} results was computed here.", "{n} of {all} results were computed here.", n=live, all=len(rows)
        ),
    )
