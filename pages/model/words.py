"""Sentences of the Model page, computed from the measurements."""

from collections.abc import Sequence

from app.words.i18n import _, _n, paragraph
from attention_core.experiments import swap
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.swap import SwapRow
from attention_core.experiments.swap.derived import Score, keys_of_last, lost_share
from attention_core.formatting import number
from pages.model.options import called, model_title

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


def setting(*, where: str, tokens: str, title: str) -> str:
    """Return the layers, the model and the text of the measurements, in words.

    Args:
        where: the layers, in words.
        tokens: the number of tokens read, in words.
        title: name of the text.
    """
    return _(
        "Softmax is replaced in {where} of {model} (4-bit quantised, no retraining). Text: {tokens} of “{title}”.",
        where=where,
        model=model_title(swap.MODEL),
        tokens=tokens,
        title=title,
    )


def verdict(original: Score, each: Score) -> str:
    """Return whether one variant changes perplexity and copying, without the numbers, which the table shows."""
    ratio = each.perplexity / original.perplexity
    if ratio > SAME:
        reads = _("perplexity rises")
    elif ratio < 1 / SAME:
        reads = _("perplexity falls")
    elif each.covered:
        reads = _n(
            "perplexity changes by at most {same:.0%} because this variant attends to the only token",
            "perplexity changes by at most {same:.0%} because this variant attends to all {n} tokens",
            n=each.covered,
            same=SAME - 1,
        )
    else:
        reads = _("perplexity changes by at most {same:.0%}", same=SAME - 1)
    copies = _copying(original, each)
    return _("**{name}**: {perplexity}, and {copying}.", name=each.name, perplexity=reads, copying=copies)


def copying(original: Score, each: Score) -> str:
    """Return what one variant does to copying, with the losses."""
    values = {"before": number(original.copied, 2), "after": number(each.copied, 2)}
    loss = _("The mean loss is {after} nats per token, compared with {before} in the original model.", **values)
    return paragraph(_("**{name}**: {copying}.", name=each.name, copying=_copying(original, each)), loss)


def _copying(original: Score, each: Score) -> str:
    lost = lost_share(original, each)
    if lost <= COPIED:
        return _("copying is preserved")
    return _("copying gets worse") if lost < LOST else _("copying fails")


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
