"""Sentences of the Learn page about the attention matrices of tiny models during training."""

from collections.abc import Callable, Sequence

from app.words.finding import Finding
from app.words.i18n import N_, _, enumeration, escape_markdown, paragraph
from attention_core.experiments.learning import LearnRow
from attention_core.formatting import percent
from attention_core.learning.hidden_answers import answer_share
from pages.learn.outcomes import Outcome

MOSTLY_SHARE = 0.5
"""A query attends mostly to its answer if at least this share of its attention weight is on the answer."""
SYMBOLS = {"recall": N_("k: key, v: value, ·: blank")}
"""Meaning of the names of tokens, by task, if these names are abbreviations."""
MOSTLY_SENTENCES = {
    "recall": N_("After {step} steps, a repeated key puts most weight on its value in layer {layer}: {names}."),
    "induction": N_(
        "After {step} steps, a repeated symbol puts most weight on the symbol that followed it the first time "
        "(an induction head), in layer {layer}: {names}."
    ),
    "copying": N_(
        "After {step} steps, a question mark puts most weight on the symbol to repeat in layer {layer}: {names}."
    ),
}
"""For each task, the sentence about the variants whose queries attend mostly to their answers."""


def attention_headline(
    results: Sequence[Outcome], shown_layer: int, link: Callable[[int], str] = lambda layer: ""
) -> Finding:
    """Return the sentence that lists the variants whose queries attend mostly to their answers, and a note.

    An answer is the symbol that a query must predict. The note explains negative weights on answers.

    Args:
        results: one per variant, each with attention matrices; the answers of their task are symbols of the sequence.
        shown_layer: the layer whose matrices are shown.
        link: function that returns the address of the view of a layer; empty for no link.
    """
    last = {outcome.name_in_sentence: _answer_weights(outcome.rows[-1]) for outcome in results}
    layer = max(range(len(next(iter(last.values())))), key=lambda i: max(own[i] for own in last.values()))
    order = sorted(last, key=lambda name: -last[name][layer])
    most = enumeration(
        _("{name} ({result})", name=escape_markdown(name), result=percent(last[name][layer]))
        for name in order
        if last[name][layer] >= MOSTLY_SHARE
    )
    layers = results[0].rows[0].spec.model.layers
    step = max(outcome.rows[-1].row.step for outcome in results)
    mostly = (
        _(
            MOSTLY_SENTENCES[results[0].rows[0].spec.model.task],
            names=most,
            layer=_("{layer} of {n}", layer=layer + 1, n=layers),
            step=step,
        )
        if most
        else _("No variant here attends mostly to the answer.")
    )
    has_negative = any(last[name][layer] < 0 for name in order)
    explanation = _("A negative weight (orange) subtracts the value.") if has_negative else ""
    choose, address = _("Choose layer {layer}", layer=layer + 1), link(layer)
    choose = f"[{choose}]({address})" if address else choose
    hint = _("{choose} to see these weights.", choose=choose) if layer != shown_layer else ""
    return Finding(f"**{paragraph(mostly, hint)}**", explanation)


def _answer_weights(row: LearnRow) -> list[float]:
    """Return for each layer the share of the attention weight that is on the answers."""
    assert row.matrices is not None
    return [answer_share(row.spec, matrix) for matrix in row.matrices]


def panel_caption(weight: float, *, name: str, share: str) -> str:
    """Return the caption of a matrix: the variant's name and accuracy, and the share of its weight on the answers."""
    text = N_("{name}: {share} correct, {weight} of the weight on the answer")
    if weight < 0:
        text = N_("{name}: {share} correct, weight {weight} on the answer (subtracts its value)")
    return _(text, name=name, share=share, weight=percent(weight))


def rise_text(outcome: Outcome) -> str:
    """Return the sentence about the steps between which a variant's accuracy rises most; empty if it never rises."""
    if outcome.largest_rise is None:
        return ""
    low, high = outcome.largest_rise
    return _("largest rise: from step {low} to {high}", low=low, high=high)
