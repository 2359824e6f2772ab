"""The form of the input "Trained": the visitor trains a tiny model on this server and chooses a sequence for it."""

from dataclasses import replace
from functools import cache

import streamlit as st

import attention_core as ac
from app.jobs import dispatch, runs
from app.state import url
from app.state.session import SharedOptions
from app.words.i18n import _, escape_markdown, paragraph
from app.words.labels import label
from attention_core.experiments.learning import MEASURE_INTERVAL, LearnRow, TrainTask
from attention_core.formatting import percent
from attention_core.inputs.source import Source
from attention_core.inputs.trained import TrainedSource, training_run
from attention_core.learning.model import ModelSpec, refusal
from attention_core.learning.rates import rate
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import TrainSpec
from attention_core.limits import current
from attention_core.variant import SOFTMAX

KEY = "input.training"
STEPS = (50, 100, 200, 300, 400, 600, 800)
"""Numbers of training steps to choose from."""


def cached_row(spec: TrainSpec) -> LearnRow | None:
    """Return the last row of a training run, which holds the trained weights; None if the run is not cached."""
    rows = dispatch.cached_rows("learning", task_of(spec))
    return None if rows is None else rows[-1]


def cache_weights(row: LearnRow) -> None:
    """Cache the weights that a training run has reached, so that this server does not train that model again.

    The learning rate does not depend on the planned number of steps. A run that has reached a step therefore has the
    same weights as a run that ends there.
    """
    if row.checkpoint is not None and row.row.step:
        task = task_of(replace(row.spec, steps=row.row.step))
        dispatch.cache_rows("learning", task, (replace(row, checkpoint=replace(row.checkpoint, moments=b"")),))


def task_of(spec: TrainSpec) -> TrainTask:
    """Return the task that trains a model to its last step, with the measurements that the page Learn shows."""
    return TrainTask(spec=spec, start=None, until=spec.steps, every=MEASURE_INTERVAL)


def source(options: SharedOptions) -> Source | None:
    """Return the input source for the chosen model and sequence; None if the model is not trained yet.

    Raises:
        LabError: if the link describes no model that can be trained.
    """
    spec: TrainSpec = options.trained
    if (row := cached_row(spec)) is None or row.checkpoint is None:
        return None
    layer = min(options.layer, spec.model.layers - 1)
    return TrainedSource(spec, options.sequence, layer, weights=row.checkpoint.weights, positions=options.positions)


def name() -> str:
    """Return the name of the model, as Markdown."""
    spec: TrainSpec = SharedOptions.trained.value
    return _(
        "{task} with {variant}, {n} steps",
        task=_(TASKS[spec.model.task].title),
        variant=escape_markdown(label(ac.from_word(spec.model.word))),
        n=spec.steps,
    )


def train() -> None:
    """Train the model, draw the progress, and draw the page again when the model is trained."""
    st.markdown(
        _(
            "Training a small model first: **{name}**. The server caches the trained weights for all visitors.",
            name=name(),
        )
    )
    tasks, no_chart = [task_of(SharedOptions.trained.value)], 1
    if runs.run_immediately("learning", tasks, lambda rows, key: None, key=KEY, height=no_chart):
        url.write_and_report()
        url.keep_notice_next_run()
        st.rerun()


def draw(*, task: str = "") -> None:
    """Draw the choice of the model and of the sequence, and what the model has learned.

    ``task`` is the key of the only task that the page shows; empty if the visitor chooses the task.
    """
    draw_model(task=task)
    SharedOptions.sequence.draw()
    spec: TrainSpec = SharedOptions.trained.value
    st.caption(describe(spec, cached_row(spec)))


def draw_model(*, task: str = "") -> None:
    """Draw the choice of the task, of the variant that the model is trained with, and of the steps; see ``draw``."""
    spec: TrainSpec = SharedOptions.trained.value
    if not task:
        key = url.sync_widget("trained.task", spec.model.task)
        titles = {each.key: _(each.title) for each in TASKS.values()}
        names = titles.__getitem__
        st.selectbox(_("Task"), list(titles), key=key, format_func=names, on_change=_use_task, args=(key,), width=240)
    key = url.sync_widget("trained.word", spec.model.word)
    words = dict.fromkeys([*trainable_words(spec.model.task), spec.model.word])
    st.selectbox(
        _("Trained with"),
        list(words),
        key=key,
        format_func=lambda word: label(ac.from_word(word)),
        on_change=_use_word,
        args=(key,),
        width=240,
    )
    key = url.sync_widget("trained.steps", spec.steps)
    stops = sorted({*(n for n in STEPS if n <= current().learn_steps), spec.steps})
    st.select_slider(_("Training steps"), stops, key=key, on_change=_use_steps, args=(key,), width=240)


@cache
def trainable_words(task: str) -> tuple[str, ...]:
    """Return the variants that can be trained on a task, as ``Attention.word`` with their default settings."""
    words = [ac.get(each.key).word for each in ac.all_variants()]
    return tuple(word for word in words if not refusal(ModelSpec(task=task, word=word)))


def describe(spec: TrainSpec, row: LearnRow | None) -> str:
    """Return text on a model: its task, its architecture and, if it is trained, the share of correct answers."""
    task = TASKS[spec.model.task]
    model = _(
        "Layers: {layers}. Heads: {heads}. Width: {width}. Learning rate: {rate:g}. Seed: {seed}.",
        layers=spec.model.layers,
        heads=spec.model.heads,
        width=spec.model.width,
        rate=spec.rate,
        seed=spec.seed,
    )
    if row is None:
        return paragraph(_(task.summary), model)
    answers = _(
        "{share} of this model's answers are correct. Guessing is correct in {chance} of the cases.",
        share=percent(row.row.accuracy),
        chance=percent(task.chance(spec.length, spec.items)),
    )
    return paragraph(_(task.summary), answers, model)


def _use_task(key: str) -> None:
    if st.session_state[key] in TASKS:  # A message from the browser may name an unknown task.
        set_task(st.session_state[key])


def set_task(task: str) -> None:
    """Choose a task's default model, and set the causal switch for the task.

    The current steps and seed stay, and the current variant if it can be trained on the task; otherwise softmax.
    """
    spec: TrainSpec = SharedOptions.trained.value
    word = SOFTMAX if refusal(ModelSpec(task=task, word=spec.model.word)) else spec.model.word
    run = training_run(task, word, steps=spec.steps, seed=spec.seed)
    SharedOptions.trained.set(replace(run, rate=rate(run.model)))
    # The causal switch is set to match the task: in most tasks, the model must not attend to later tokens.
    SharedOptions.causal.set(TASKS[task].causal)


def _use_word(key: str) -> None:
    spec, word = SharedOptions.trained.value, st.session_state[key]
    if word in (*trainable_words(spec.model.task), spec.model.word):
        model = replace(spec.model, word=word, tokens=spec.model.tokens or spec.length)
        SharedOptions.trained.set(replace(spec, model=model, rate=rate(model)))


def _use_steps(key: str) -> None:
    SharedOptions.trained.set(replace(SharedOptions.trained.value, steps=st.session_state[key]))
