"""The live sentence on the Home page: which words one word attends to, under softmax and under cheaper variants.

A slider changes each variant's budget, the setting that trades cost for accuracy.
"""

from functools import partial

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.live_sentence import Row, SentenceState, live_sentence
from app.state import presets, url
from app.state.controls import Options
from app.state.session import PINNED, REFERENCE, SharedOptions
from app.words.i18n import _, escape_markdown, sentence
from app.words.labels import setting_name
from attention_core.analysis.matrix.budgets import LONG_TEXT_TOKENS, BudgetComparison, BudgetSteps
from attention_core.inputs.source import TextSource
from attention_core.inputs.text import beginning
from pages.home.options import HomeOptions

MODEL = "minilm"
VARIANTS = tuple(map(ac.get, (REFERENCE, "local", "linear", "nystrom")))
BUDGETS = {"local": HomeOptions.window, "nystrom": HomeOptions.landmarks}
"""The option that sets each variant's budget, by the variant's key."""


def show() -> None:
    """Draw the text field and the sentence, or a message if the sentence cannot be used."""
    entered = HomeOptions.sentence.draw(icon=":material/edit:", placeholder=_("Type a sentence"), on_change=_reset_word)
    try:
        text = beginning(entered, tokens=presets.SENTENCE_TOKENS, model=MODEL)
        source = TextSource(text, MODEL, presets.SENTENCE_LAYER)
        budgets = cached.compare_budgets(source, VARIANTS, head=presets.SENTENCE_HEAD)
    except ac.LabError as error:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.error(escape_markdown(sentence(error)), icon=":material/error:")
            if entered != presets.SENTENCE:
                st.button(_("Show the example sentence"), key="home.example", on_click=_show_example)
        return
    HomeOptions.word.restrict_to(range(len(budgets.tokens)))
    sentences = [escape_markdown(sentence(notice)) for notice in cached.record(source).notices]
    for each in [cut_note(text), *sentences] if text != entered else sentences:
        st.caption(each)
    live_sentence(
        budgets.tokens,
        [row(steps) for steps in budgets.variants],
        current_state(budgets),
        key="home.sentence",
        on_turn=partial(_set_state, budgets),
        link=_matrices_address(text),
        row_parameter=PINNED,
        unshown=budgets.unshown,
        caption=caption(),
        notes=notes(is_example=text == presets.SENTENCE),
    )


def cut_note(text: str) -> str:
    """Return a Markdown note that only the beginning of a text is shown."""
    return _(
        "Only the beginning of the text, up to “{words}”, is shown, because a sentence can have at most {most} tokens."
    ).format(
        words=escape_markdown(" ".join(text.split()[-3:])[-presets.SENTENCE_TOKENS :]), most=presets.SENTENCE_TOKENS
    )


def caption() -> str:
    """Return the caption: the model whose weights are drawn, and the tokens that it adds."""
    return _(
        "The weights are those of MiniLM-L6, layer {layer}, head {head}. The model also adds [CLS] at the start and "
        "[SEP] at the end.",
        layer=presets.SENTENCE_LAYER,
        head=presets.SENTENCE_HEAD,
    )


def notes(*, is_example: bool) -> list[str]:
    """Return sentences that explain the numbers, and the choice of the head if the sentence is the example."""
    return [
        _(
            "The output error of a word is the difference from softmax's output for this word, divided by the size of "
            "softmax's output. The output includes [CLS] and [SEP], which a window can hide."
        ),
        _(
            "The cost is the number of multiply-adds of all matrix products without a causal mask. It is compared at "
            "{long} and {short} tokens, with the same settings.",
            long=f"{2 * LONG_TEXT_TOKENS:,}",
            short=f"{LONG_TEXT_TOKENS:,}",
        ),
        *([_("This head was chosen because it links “it” to “animal”. Other heads differ.")] if is_example else []),
        _(
            "A sentence can have at most {most} tokens, so that every word fits on the screen.",
            most=presets.SENTENCE_TOKENS,
        ),
    ]


def row(steps: BudgetSteps) -> Row:
    """Return the row that shows the sentence with the attention weights of one variant."""
    variant = steps.attentions[0].variant
    budget = variant.budget if variant.key in BUDGETS else None
    return Row(
        key=variant.key,
        title=_(variant.title),
        knob="" if budget is None else setting_name(budget.name),
        note=_("all pairs") if variant.key == REFERENCE else _("all pairs, no exponential"),
        why=_difference_reasons().get(variant.key, {}),
        settings=[_budget_value(each) for each in steps.attentions],
        variant_words=[each.word for each in steps.attentions],
        weights=steps.weights,
        errors=steps.output_errors.round(4).tolist(),
        growths=steps.growths,
    )


def _difference_reasons() -> dict[str, dict[str, str]]:
    """Return explanations of the differences from softmax, by the variant's key and the type of difference.

    The types are "less" and "more" weight on a word, "even" (similar) and "negative" weights, and "unaveraged" for
    other weights if every token is a landmark. The browser replaces the names in braces.
    """
    averages = _("{row} averages neighbouring tokens into landmarks, which blurs the weights.")
    return {
        "local": {
            "less": _("{row} hides “{target}”, which is {away} tokens away, outside the window of {setting}."),
            "more": _(
                "{row} shares the weight among the words in the window only, so “{target}” gets more than with softmax."
            ),
        },
        "linear": {
            "less": _(
                "{row} has no exponential to enlarge differences, so “{target}” gets less weight than with softmax."
            ),
            "even": _(
                "{row} has no exponential to enlarge differences, so all words get similar weights ({low} to {high})."
            ),
        },
        "nystrom": {
            "less": averages,
            "more": averages,
            "unaveraged": _("{row} only approximates an inverse matrix, which changes the weights."),
            "negative": _(
                "{row} multiplies by an inverse matrix, which makes some weights negative, such as that of “{other}” "
                "({least} of the weight shown)."
            ),
        },
    }


def current_state(budgets: BudgetComparison) -> SentenceState:
    """Return the chosen word, and for each variant the slider position whose budget is nearest to the chosen one."""
    steps = {}
    for each in budgets.variants:
        key = each.attentions[0].key
        wanted = BUDGETS[key].value if key in BUDGETS else 0
        distances = [abs((_budget_value(attention) or 0) - wanted) for attention in each.attentions]
        steps[key] = distances.index(min(distances))
    word = HomeOptions.word.value
    return SentenceState(budgets.far_query if word is None else word, steps)


def _budget_value(attention: ac.Attention) -> int | None:
    budget = attention.variant.budget
    return None if budget is None else int(getattr(attention.params, budget.name))


def _set_state(budgets: BudgetComparison, reported: SentenceState) -> None:
    def budget(key: str) -> int:
        steps = next(each.attentions for each in budgets.variants if each.attentions[0].key == key)
        return _budget_value(steps[reported.steps[key]]) or 0

    HomeOptions.word.set(reported.word)
    HomeOptions.window.set(budget("local"))
    HomeOptions.landmarks.set(budget("nystrom"))


def _show_example() -> None:
    HomeOptions.sentence.set(presets.SENTENCE)
    _reset_word()


def _reset_word() -> None:
    HomeOptions.word.set(None)  # The word is stored as an index, which is wrong for a new sentence.


def _matrices_address(text: str) -> str:
    """Return the address of the Matrices page with this sentence. The browser adds the variants."""
    query = url.to_query(
        url.values(),
        Options.shared(),
        input=TextSource.key,
        text=text,
        model=MODEL,
        layer=presets.SENTENCE_LAYER,
        head=presets.SENTENCE_HEAD,
        causal=False,
        special=False,
    )
    query.pop(SharedOptions.variants.name, None)
    return "matrices" + url.query_string(query)
