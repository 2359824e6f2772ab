"""The “Tiny model” view of the Model page: a trained model's answers before and after its attention is replaced."""

import math
from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app.figures.picture import INK
from app.figures.theme import GREY, PAGE, Figure, add_line, annotation, axis, finish, style
from app.state.session import SharedOptions
from app.ui import chart, navigation, palette
from app.ui.sources import trained_form
from app.words.finding import Finding, Lines, to_lines
from app.words.i18n import N_, _, enumeration, paragraph
from app.words.labels import label
from attention_core.experiments import trained_swap
from attention_core.experiments.trained_swap import TrainedSwapRow, TrainedSwapTask
from attention_core.formatting import formatted, number, percent
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import EVALUATION_SEQUENCES, TrainSpec
from attention_core.model_patching import UNIFORM
from pages.model import variant_buttons
from pages.model.options import ALL_LAYERS, ModelOptions, Question, display_name, name_in_sentence
from pages.model.view import View

BUTTON_WORDS = ("softmax", "local~window~4", "sink~window~4", "topk~k~4", "linear", "retention", UNIFORM)
"""Variants offered as buttons. A window of four tokens is much shorter than the sequences of the tasks."""
NEXT_TOKEN_TASKS = ("characters", "induction")
"""Tasks whose answers are the next tokens. Only for these, the perplexity is shown."""
CLEARLY_BETTER = 0.1
"""Largest share of the trained model's gain over guessing that a replacement not clearly better than guessing keeps.

A trained model is clearly better than guessing if it has at least this share of the largest possible gain.
"""
BAR_HEIGHT, AXES_HEIGHT = 36, 80
"""Heights in pixels of a bar with its gap, and of the axis below and the label above the bars."""
MAX_LOSS = 700.0
"""Largest loss in nats whose exponential does not overflow a float."""


def top() -> None:
    """Draw the choice of the model, of its replaced layers, and of the replacements."""
    spec: TrainSpec = SharedOptions.trained.value
    layers = range(ALL_LAYERS, spec.model.layers)
    ModelOptions.replaced.restrict_to(layers)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        trained_form.draw_model()
        ModelOptions.replaced.draw(
            options=layers,
            format_func=lambda layer: _("all") if layer == ALL_LAYERS else _("layer {layer}", layer=layer),
        )
    variant_buttons.show(
        causal=TASKS[spec.model.task].causal,
        control=ModelOptions.replacements,
        introduction=_("Replace {name} in the trained model with:", name=f"**{trained_variant(spec)}**"),
        offered=BUTTON_WORDS,
    )


def show(question: Question) -> None:
    """Train the model if it is not trained yet, and draw its answers with every replacement."""
    spec: TrainSpec = SharedOptions.trained.value
    if trained_form.cached_row(spec) is not None:
        VIEW.show(question)
        navigation.link("learn", _("Train models with other attention variants"))
        return
    assert question.headline is not None
    question.headline.markdown(
        _(
            "When the model is trained, you see how many of its answers stay correct if its attention is replaced "
            "without retraining."
        )
    )
    trained_form.train()


def trained_variant(spec: TrainSpec) -> str:
    """Return the name of the variant that a model was trained with."""
    return label(ac.from_word(spec.model.word))


def _tasks(question: Question) -> tuple[TrainedSwapTask, ...]:
    spec: TrainSpec = SharedOptions.trained.value
    run = trained_form.cached_row(spec)
    replaced = question.options.replaced
    layers = range(spec.model.layers) if replaced == ALL_LAYERS else (replaced,)
    weights = run.checkpoint.weights if run and run.checkpoint else b""
    return trained_swap.tasks(spec, question.options.replacements, layers, weights=weights)


def describe_replacements(rows: Sequence[TrainedSwapRow], chance: float) -> Lines | str:
    """Return the finding that a model is not clearly better than guessing, and those about changes of the accuracy.

    The unchanged model has the first row.
    """
    if len(rows) < 2:
        return _("Choose a replacement above.") if rows else ""
    original, *changed = rows
    before = percent(original.accuracy)
    same = [each for each in changed if percent(each.accuracy) == before]
    falls = [each for each in changed if each not in same and each.accuracy < original.accuracy]
    rises = [each for each in changed if each not in same + falls]
    every = [each.word for each in changed]
    limit = chance + CLEARLY_BETTER * (original.accuracy - chance)
    is_trained = original.accuracy >= chance + CLEARLY_BETTER * (1 - chance)
    is_guessing = is_trained and all(each.accuracy <= limit for each in changed)
    text = paragraph(
        _(
            "**The share of correct answers falls from {before} to {changes}.**"
            if is_guessing or not is_trained
            else "**The share of correct answers falls from {before} to {changes} (guessing: {chance}).**",
            before=before,
            changes=_changes(falls, every),
            chance=percent(chance),
        )
        if falls
        else "",
        _(
            "**The share of correct answers rises from {before} to {changes}.**",
            before=before,
            changes=_changes(rises, every),
        )
        if rises
        else "",
        _(
            "**With {names}, {before} of the answers are correct**, as before the replacement (after rounding).",
            before=before,
            names=enumeration(name_in_sentence(each.word, every) for each in same),
        )
        if same
        else "",
    )
    guessing = ""
    if not is_trained:
        guessing = N_("**The trained model itself is not clearly better than guessing ({chance}).**")
    elif is_guessing:
        is_worse = all(round(100 * each.accuracy) < round(100 * chance) for each in changed)
        one = (
            N_("**With {name}, the model is worse than guessing ({chance}).**")
            if is_worse
            else N_("**With {name}, the model is not clearly better than guessing ({chance}).**")
        )
        several = (
            N_("**All replacements are worse than guessing ({chance}).**")
            if is_worse
            else N_("**No replacement is clearly better than guessing ({chance}).**")
        )
        guessing = one if len(changed) == 1 else several
    name = name_in_sentence(changed[0].word, every)
    first = [[Finding(_(guessing, name=name, chance=percent(chance)))]] if guessing else []
    return [*first, [Finding(text)]]


def _changes(rows: Sequence[TrainedSwapRow], words: Sequence[str]) -> str:
    """Return a list in words of the accuracy with each replacement, named as among ``words``."""
    return enumeration(
        _("{share} with {name}", share=percent(row.accuracy), name=name_in_sentence(row.word, words)) for row in rows
    )


def bar_title(row: TrainedSwapRow, spec: TrainSpec) -> str:
    """Return the lines next to a model's bar: its name, its loss, and its perplexity if answers are the next tokens."""
    name = display_name(row.word) if row.layers else _("{name}, as trained", name=display_name(row.word))
    loss = formatted(row.loss, ".2f")
    if spec.model.task not in NEXT_TOKEN_TASKS:
        return _("{name}<br>loss {loss}", name=name, loss=loss)
    return _(
        "{name}<br>loss {loss}, perplexity {perplexity}",
        name=name,
        loss=loss,
        perplexity=number(perplexity(row.loss), 3),
    )


def _chance(spec: TrainSpec) -> float:
    """Return the accuracy of guessing."""
    return TASKS[spec.model.task].chance(spec.length, spec.items)


def _guesses_from_sequence(spec: TrainSpec) -> bool:
    """Return whether a guess is one of the possible answers that the sequence contains."""
    task = TASKS[spec.model.task]
    return task.shows_answers and _chance(spec) > 1 / task.classes


def perplexity(loss: float) -> float:
    """Return the exponential of a loss in nats; infinite if it is too large for a float."""
    return math.inf if loss > MAX_LOSS else math.exp(loss)


def notes(spec: TrainSpec, layers: int) -> str:
    """Return which layers are replaced, where accuracy and loss are measured, and what perplexity is, if shown."""
    return paragraph(
        _(
            "The attention is replaced in {n} of {all} layers, without further training.",
            n=layers,
            all=spec.model.layers,
        ),
        _(
            "Accuracy and loss (nats per answer) are measured on {n} sequences of {length} tokens that training does "
            "not use.",
            n=EVALUATION_SEQUENCES,
            length=spec.length,
        ),
        _("The perplexity is the exponential of the mean loss per predicted token.")
        if spec.model.task in NEXT_TOKEN_TASKS
        else "",
    )


def below_guessing(spec: TrainSpec, rows: Sequence[TrainedSwapRow]) -> str:
    """Return why an accuracy is below that of guessing from the sequence; empty if none is."""
    if not (_guesses_from_sequence(spec) and any(row.accuracy < _chance(spec) for row in rows)):
        return ""
    return _(
        "A model can be worse than guessing from the sequence, because it chooses among all {n} possible answers.",
        n=TASKS[spec.model.task].classes,
    )


def _describe(rows: Sequence[TrainedSwapRow]) -> Lines:
    """Return the findings about the replacements, and below the bars why a model can be worse than guessing."""
    spec: TrainSpec = SharedOptions.trained.value
    found = to_lines(describe_replacements(rows, _chance(spec)))
    return [*found, [Finding("", below_guessing(spec, rows))]]


def bars(rows: Sequence[TrainedSwapRow], spec: TrainSpec, *, dark: bool) -> Figure:
    """Draw the share of correct answers of each model as a bar next to its loss, and that of guessing as a line.

    ``dark`` is whether the page is dark. The line has the colour of text, to be visible on the bars.
    """
    chance, titles = _chance(spec), [bar_title(row, spec) for row in rows]
    replacements = [row.word for row in rows if row.layers]
    colours = [*[GREY] * (len(rows) - len(replacements)), *palette.indices(replacements)]
    data = {
        "type": "bar",
        "orientation": "h",
        "x": [row.accuracy for row in rows],
        "y": titles,
        "marker": {"color": [style(colour).colour for colour in colours]},
        "customdata": [percent(row.accuracy) for row in rows],
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
    }
    figure = finish(
        [data],
        height=BAR_HEIGHT * len(rows) + AXES_HEIGHT,
        xaxis=axis(_("correct answers"), range=[0, 1], tickformat="~%"),
        yaxis=axis("", autorange="reversed"),
        margin={"t": 24, "r": 48},
    )
    add_line(figure, x=chance, color=INK[dark], dash="dash", width=1.5)
    text = N_("Guessing from the sequence: {chance}") if _guesses_from_sequence(spec) else N_("Guessing: {chance}")
    label = _(text, chance=percent(chance))
    figure["layout"]["annotations"] = [
        annotation(label, chance, 1, yref="y domain", yanchor="bottom"),
        # The background of an accuracy has the page's colour, so that it hides the dashed line behind the number.
        *(
            annotation(percent(row.accuracy), row.accuracy, title, xanchor="left", bgcolor=PAGE)
            for row, title in zip(rows, titles, strict=True)
        ),
    ]
    return figure


def _draw(_question: Question, rows: Sequence[TrainedSwapRow], key: str) -> None:
    spec: TrainSpec = SharedOptions.trained.value
    message = _("Bars: the share of correct answers with each attention; a line shows that of guessing")
    figure = bars(rows, spec, dark=st.context.theme.type == "dark")
    chart.show(figure, key=f"{key}.bars", name="correct-answers", alt=message)


def _notes(question: Question, _rows: Sequence[TrainedSwapRow]) -> str:
    spec: TrainSpec = SharedOptions.trained.value
    replaced = notes(spec, spec.model.layers if question.options.replaced == ALL_LAYERS else 1)
    return paragraph(trained_form.describe(spec, trained_form.cached_row(spec)), replaced)


VIEW = View(
    experiment="trained_swap",
    tasks=_tasks,
    describe=lambda _question, rows: _describe(rows),
    draw=_draw,
    notes=_notes,
    file="trained-model.csv",
)
