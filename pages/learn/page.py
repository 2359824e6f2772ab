"""The Learn page: tiny models with different attention variants, trained on small tasks."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.jobs import runs
from app.page import Page
from app.ui import export, variant_picker
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n, paragraph
from attention_core.experiments import learning
from attention_core.experiments.learning import LearnRow, Plan
from attention_core.learning import recorded_runs
from attention_core.learning.learning_task import LearningTask
from attention_core.learning.tasks import task as task_of
from pages.learn import attention, open_links, options, race, words
from pages.learn.options import LearnOptions
from pages.learn.outcomes import outcomes

KEY = "learn"


def top() -> LearningTask:
    """Draw the variants, the task and its description."""
    variant_picker.show(all_stay=True)
    return task_of(LearnOptions.task.value)


def _view(draw: Callable[[Sequence[LearnRow], str], None], describe: Callable[..., str], task: LearningTask) -> None:
    """Draw the button, the sentence and one view of the rows of the live run, or of the recorded runs."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        options.show()
    st.markdown(_(task.summary))
    for title, reason in options.trainable()[1].items():
        st.caption(
            ":material/block: " + _("{name} cannot be trained on this task: {reason}", name=_(title), reason=_(reason))
        )
    if text := words.too_many(options.trainable()[0], LearnOptions.seeds.value):
        st.caption(text)
    place = st.container(key="learn.summary").empty()
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        LearnOptions.view.draw(label_visibility="collapsed")
        if LearnOptions.view.value == "race":
            LearnOptions.measure.draw(label_visibility="collapsed")
            LearnOptions.by.draw(label_visibility="collapsed")
    plan, recorded = options.live_plan(), recorded_runs.known(options.recorded_plan())

    def show(found: runs.Run[LearnRow] | None, key: str) -> None:
        live = found is not None and found.request == plan and found.rows
        rows = found.rows if live and found else recorded
        if not rows:
            place.info(
                _("These settings are not recorded. Press “Train on this machine”."), icon=":material/model_training:"
            )
            return
        place.markdown(describe(rows, task))
        if not live and (text := words.not_recorded(options.trainable()[0], rows)):
            st.caption(text)
        draw(rows, key)
        if key == "end":
            open_links.show(rows)
            _show_origin(rows, plan, live=bool(live))

    runs.run_on_button(
        "learning",
        plan,
        partial(learning.next_task, plan),
        key=KEY,
        label=_("Train on this machine"),
        icon=":material/model_training:",
        button="learn.button",
        row=row,
        progress=partial(progress, plan),
        draw=show,
    )


def progress(plan: Plan, found: runs.Run[LearnRow]) -> tuple[float, str]:
    """Return the fraction of a run that is done, from 0 to 1, and a text that reports it."""
    done = len([each for each in found.rows if not each.is_test])
    every = learning.total(plan) - (len(plan.specs) if plan.tests else 0)
    share = min(1.0, done / every)
    return share, _("{share:.0%} trained · {left}", share=share, left=runs.time_left(found.seconds, share))


def _describe_race(rows: Sequence[LearnRow], task: LearningTask) -> str:
    found, spec = outcomes(rows), rows[0].spec
    return paragraph(words.headline(found, task.chance(spec.length, spec.items)), words.diverged(found))


def _describe_tests(rows: Sequence[LearnRow], task: LearningTask, *, by: str) -> str:
    spec = rows[0].spec
    return words.tested(outcomes(rows), by=by, trained_at=spec.length if by == "length" else spec.items)


def _show_origin(rows: Sequence[LearnRow], plan: Plan, *, live: bool) -> None:
    """Draw how the numbers were made, and the download."""
    spec = rows[0].spec
    rates = ", ".join(f"{outcome.name} {outcome.rows[0].spec.rate:g}" for outcome in outcomes(rows))
    found = recorded_runs.recorded(spec.model.task)
    made = (
        _("Trained on this server.")
        if live or found is None
        else _("Recorded on {cpu}, {date}.", cpu=found.stamp.cpu, date=found.stamp.date[:10])
    )
    st.caption(
        paragraph(
            made,
            _n(
                "The lines show {n} seed.",
                "The lines are medians over {n} seeds, and the bands are their quartiles.",
                n=len({each.row.seed for each in rows}),
            ),
            _(
                "Each model has {layers} layers of {heads} head with size {width} and no feed-forward part. It trains "
                "on {batch} new sequences of {length} tokens at each step.",
                layers=spec.model.layers,
                heads=spec.model.heads,
                width=spec.model.width,
                batch=spec.batch,
                length=spec.length,
            ),
            _(
                "Queries, keys and values are learned. Gates, write strengths and other settings of a variant are not: "
                "they keep the variant's fixed rule."
            ),
            _("Learning rates: {rates}.", rates=rates),
        )
    )
    lazy_expander(_("Export"), lambda: _export(rows, plan), key="learn.files", icon=":material/download:")


def _export(rows: Sequence[LearnRow], plan: Plan) -> None:
    """Draw the download of the rows as CSV, and the command that trains the same models."""
    export.download(_("Numbers (CSV)"), lambda: export.csv_of([each.row for each in rows]), "learning.csv")
    spec = plan.specs[0]
    names = " ".join(dict.fromkeys(each.model.word for each in plan.specs))
    seeds = len({each.seed for each in plan.specs})
    st.code(
        f"python -m attention_core learn --task {spec.model.task} --variants {names} --seeds {seeds} "
        f"--steps {spec.steps} --layers {spec.model.layers} --convolution {spec.model.convolution} "
        f"--positions {spec.model.positions}",
        language=None,
        wrap_lines=True,
    )


def scope() -> Scope:
    """Return the scope of the page: the trained variants."""
    return Scope(variants=tuple(each.word for each in options.trainable()[0]))


PAGE = Page(
    title=N_("Learn"),
    icon=":material/model_training:",
    section="Measure",
    rank=5,
    question=N_("What can each variant learn?"),
    options=LearnOptions,
    opening=options.opening,
    uses_input=False,
    has_causal_switch=False,
    scope=scope,
    top=top,
    view=LearnOptions.view,
    views={
        "race": partial(_view, race.show_race, _describe_race),
        "attention": partial(_view, attention.show, _describe_race),
        "longer": partial(_view, partial(race.show_tests, by="length"), partial(_describe_tests, by="length")),
        "capacity": partial(_view, partial(race.show_tests, by="items"), partial(_describe_tests, by="items")),
    },
)
