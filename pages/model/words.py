"""Sentences of the Model page, computed from the measurements."""

from collections.abc import Sequence

from app.words.i18n import _, _n, paragraph
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.swap import SwapRow
from attention_core.experiments.swap.derived import Score, keys_of_last, lost_share
from attention_core.formatting import number
from attention_core.inputs import models
from pages.model.options import called

SAME = 1.05
"""Largest ratio of perplexities for which perplexity counts as preserved."""
WORSE = 1.5
"""Ratio of perplexities that the Layers view reports."""
COPIED = 0.2
"""Largest lost share of what copying saves for which copying counts as preserved."""
LOST = 0.8
"""Lost share from which on copying fails."""


def keys_in_words(words: Sequence[str], n: int) -> str:
    """Return how many of ``n`` tokens the last one attends to in each variant with a fixed pattern; empty for none."""
    counts = [
        _n("{n} key with {name}", "{n} keys with {name}", n=count, name=called(word))
        for word, count in keys_of_last(words, n).items()
    ]
    return _("The last of {n} tokens attends to {counts}.", n=n, counts=", ".join(counts)) if counts else ""


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
        "Softmax is replaced in {where} of {model} (4-bit quantised, no retraining). Text: {tokens} of “{title}”.",
        where=where,
        model=model.title,
        tokens=tokens,
        title=title,
    )


def verdict(original: Score, each: Score) -> str:
    """Return the effect of one variant on perplexity and copying; empty if either number is missing."""
    if not (original.complete and each.complete):
        return ""
    return paragraph(_perplexity(original, each), _copying(original, each))


def _perplexity(original: Score, each: Score) -> str:
    ratio = each.perplexity / original.perplexity
    values = {
        "name": each.name,
        "before": number(original.perplexity, 3),
        "after": number(each.perplexity, 3),
        "ratio": number(ratio, 2),
    }
    if each.covered and 1 / SAME <= ratio <= SAME:
        return _n(
            "**{name}** attends to the only token of the text, as softmax does. Its perplexity is {after}.",
            "**{name}** attends to all {n} tokens of the text, as softmax does. Its perplexity is {after}.",
            n=each.covered,
            **values,
        )
    if ratio > SAME:
        return _("With **{name}** perplexity rises from {before} to {after} ({ratio}×).", **values)
    if ratio < 1 / SAME:
        return _("With **{name}** perplexity falls from {before} to {after} ({ratio}×).", **values)
    if values["before"] == values["after"]:
        return _("With **{name}** perplexity is unchanged ({after}).", **values)
    return _(
        "With **{name}** perplexity changes by at most {same:.0%}, from {before} to {after}.", same=SAME - 1, **values
    )


def _copying(original: Score, each: Score) -> str:
    values = {"before": number(original.copied, 2), "after": number(each.copied, 2)}
    lost = lost_share(original, each)
    if values["before"] == values["after"]:
        return _("Copying is unchanged: the loss is {after} nats per token.", **values)
    if lost <= COPIED:
        return _(
            "Copying is preserved: the loss is {after} nats per token, compared with {before} in the original model.",
            **values,
        )
    if lost < LOST:
        return _("Copying gets worse: the loss rises from {before} to {after} nats per token.", **values)
    return _("Copying fails: the loss rises from {before} to {after} nats per token.", **values)


def origin(rows: Sequence[SwapRow | ContinuationRow]) -> str:
    """Return whether the results were recorded, with the date, or computed now."""
    stamps = sorted({row.recorded for row in rows if row.recorded})
    live = sum(not row.recorded for row in rows)
    if not stamps:
        return _("Computed on this machine.")
    text = _("Recorded on {stamps}.", stamps="; ".join(stamps))
    if not live:
        return text
    return paragraph(
        text,
        _n(
            "{n} of {all} results was computed on this machine.",
            "{n} of {all} results were computed on this machine.",
            n=live,
            all=len(rows),
        ),
    )
