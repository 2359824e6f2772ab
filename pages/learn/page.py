"""The Learn page: tiny models with different attention variants, trained on small tasks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import streamlit as st

from app.jobs import runs
from app.lessons.options import LessonOptions
from app.page import Page
from app.state import url
from app.state.session import SharedOptions
from app.ui import export, variant_picker
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.finding import Finding
from app.words.i18n import N_, _, paragraph
from attention_core.experiments import learning
from attention_core.experiments.learning import LearnRow, Plan, length_with_items
from attention_core.learning import recorded_runs
from attention_core.learning.learning_task import LearningTask
from attention_core.learning.tasks import task as task_of
from pages.learn import (
    attention,
    gaps,
    generalisation_words,
    missing,
    open_links,
    options,
    part_words,
    race,
    shared_runs,
    training_words,
    words,
)
from pages.learn.measures import MEASURES
from pages.learn.options import LearnOptions
from pages.learn.outcomes import outcomes

KEY = "learn"


def top() -> LearningTask:
    """Return the task that the visitor has chosen."""
    return task_of(LearnOptions.task.value)


def _show_view(
    draw: Callable[[Sequence[LearnRow], str], None], describe: Callable[..., Finding], task: LearningTask
) -> None:
    """Draw the finding, the controls, and one view of the live run or of the recorded runs.

    Args:
        draw: draws the view from the measurements; its last argument is a prefix for the keys of elements.
        describe: returns the finding, whose text is above the view and whose explanation is below it.
        task: the task.
    """
    result = st.container(key="learn.summary").empty()
    row = st.container(horizontal=True, horizontal_alignment="distribute", key="controls.learn")
    with row:
        view = LearnOptions.view.draw(options=options.views(), label_visibility="collapsed")
    variant_picker.show(keeps_all=True)
    if limits := list(_limits()):
        st.caption(":material/block: " + paragraph(*limits))
    positions, convolution = options.positions_of(LearnOptions.current()), LearnOptions.convolution.value == "on"
    st.caption(generalisation_words.task_text(task, view, positions, convolution=convolution))
    picture, origin = st.container(), st.container()
    plan, recorded = options.live_plan(), recorded_runs.recorded_rows(options.recorded_plan())

    def show(results: runs.Run[LearnRow] | None, key: str) -> None:
        live = results is not None and results.request == plan and results.rows
        rows = results.rows if live and results else recorded
        parts = missing.part_results(rows) if view == "parts" else []
        if not rows or (view == "parts" and not parts):
            result.info(gaps.not_recorded_at_all(), icon=":material/model_training:")
            return
        if view == "parts" and not any(each.ablations for each in parts):
            result.info(gaps.no_parts_removed(parts, live=bool(live)), icon=":material/model_training:")
            return
        missing_runs = "" if live else gaps.not_recorded(options.trainable()[0], rows)
        finding = describe(rows, task)
        result.markdown(finding.text)
        draw(rows, key)
        if missing_runs or finding.explanation:
            with st.container(key=f"learn.details.{key}"):
                if finding.explanation:
                    st.markdown(finding.explanation)
                if missing_runs:
                    st.caption(missing_runs)
        if key == "end":
            with origin:
                open_links.show(rows)
                _show_origin(rows, plan, live=bool(live))

    with picture:
        runs.run_on_button(
            "learning",
            plan,
            partial(shared_runs.next_tasks, plan),
            key=f"{KEY}.parts" if view == "parts" else KEY,
            label=_("Train on this server"),
            icon=":material/model_training:",
            kind="secondary",
            button="learn.button",
            row=row,
            progress=partial(progress, plan),
            draw=show,
            help=training_words.duration([recorded_runs.estimated_seconds(spec) for spec in plan.specs]),
        )


def _limits() -> Iterator[str]:
    """Yield messages about the chosen variants that cannot be trained, or that would be too many."""
    chosen, refused = options.trainable()
    for title, reason in refused.items():
        yield _("{name} cannot be trained on this task: {reason}", name=_(title), reason=_(reason))
    seeds = LearnOptions.seeds.value
    if text := gaps.variants_left_out(chosen, seeds, options.models_per_variant(seeds)):
        yield text


def progress(plan: Plan, results: runs.Run[LearnRow]) -> tuple[float, str]:
    """Return the fraction of a run that is done, from 0 to 1, and a text that reports it."""
    done = len([each for each in results.rows if not each.is_test])
    total = learning.total(plan) - (len(plan.specs) if plan.tests else 0)
    share = min(1.0, done / total)
    return share, _("{share:.0%} trained · {left}", share=share, left=runs.time_left(results.seconds, share))


def _describe_race(rows: Sequence[LearnRow], _task: LearningTask) -> Finding:
    results = outcomes(rows)
    finding = words.headline(results)
    return Finding(finding.text, "\n\n".join(filter(None, (words.diverged_note(results), finding.explanation))))


def _link(fields: dict[str, list[str]]) -> str:
    """Return the address of this page with the chosen variants and other options, for a link in a sentence.

    In a lesson, it is empty, because a link would leave the lesson.
    """
    if LessonOptions.lesson.value is not None:
        return ""
    chosen = [attention.word for attention in SharedOptions.variants.value]
    return "#" + url.query_string({**fields, SharedOptions.variants.name: chosen})


def _describe_attention(rows: Sequence[LearnRow], task: LearningTask) -> Finding:
    def link(layer: int) -> str:
        return _link({LearnOptions.view.name: ["attention"], LearnOptions.layer.name: [str(layer)]})

    return attention.finding(rows, link) or _describe_race(rows, task)


def _describe_parts(rows: Sequence[LearnRow], _task: LearningTask) -> Finding:
    return part_words.largest_losses(missing.part_results(rows))


def _describe_tests(rows: Sequence[LearnRow], task: LearningTask, *, by: str) -> Finding:
    if gaps.no_tests(task, by=by):
        return Finding("")  # The view shows this message instead of a chart.
    spec, results = rows[0].spec, outcomes(rows)
    trained_at = spec.length if by == "length" else spec.items
    longest = max((x for each in results for x, _share in each.test_points(by)), default=trained_at)
    counterparts = outcomes(shared_runs.counterparts(rows)) if by == "length" else []
    finding = generalisation_words.headline(results, by=by, trained_at=trained_at, counterparts=counterparts)
    length, items = (
        (longest, spec.items) if by == "length" else (length_with_items(task, spec.length, longest), longest)
    )
    return Finding(
        finding.text, paragraph(finding.explanation, generalisation_words.hidden_answers(results, length, items, by=by))
    )


def _show_origin(rows: Sequence[LearnRow], plan: Plan, *, live: bool) -> None:
    """Write how and when the models were trained, and draw the download button."""
    parts = LearnOptions.view.value == "parts"
    shown = [each.full for each in missing.part_results(rows)] if parts else outcomes(rows)
    spec = shown[0].rows[0].spec
    document = recorded_runs.recorded_document(spec.model.task)
    origin = (
        _("Trained on this server.")
        if live or document is None
        else _("Recorded on {cpu}, {date}.", cpu=document.stamp.cpu, date=document.stamp.date[:10])
    )
    complete = _("The numbers below are for complete models, with no part removed.") if parts else ""
    training = paragraph(
        complete,
        training_words.model_and_batches(spec),
        training_words.trained_tensors([each.model for each in plan.specs]),
        training_words.learning_rates(shown),
    )
    st.caption(origin)
    lazy_expander(_("How this was trained"), lambda: st.caption(training), key="learn.training")
    lazy_expander(_("Export"), lambda: _export(rows, plan), key="learn.files")


def _export(rows: Sequence[LearnRow], plan: Plan) -> None:
    """Draw the download of the rows as CSV, and the command that trains the same models."""
    export.download(_("Numbers (CSV)"), lambda: export.rows_to_csv([each.row for each in rows]), "learning.csv")
    spec = plan.specs[0]
    names = " ".join(dict.fromkeys(each.model.word for each in plan.specs))
    seeds = len({each.row.seed for each in rows})
    st.code(
        f"python -m attention_core learn --task {spec.model.task} --variants {names} --seeds {seeds} "
        f"--steps {spec.steps} --layers {spec.model.layers} --heads {spec.model.heads} "
        f"--convolution {spec.model.convolution} --positions {spec.model.positions}",
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
    header=options.show,
    measures=MEASURES,
    opening=options.opening,
    uses_input=False,
    has_causal_switch=False,
    scope=scope,
    top=top,
    view=LearnOptions.view,
    views={
        "race": partial(_show_view, race.show_race, _describe_race),
        "attention": partial(_show_view, attention.show, _describe_attention),
        "longer": partial(_show_view, partial(race.show_tests, by="length"), partial(_describe_tests, by="length")),
        "capacity": partial(_show_view, partial(race.show_tests, by="items"), partial(_describe_tests, by="items")),
        "parts": partial(_show_view, missing.show, _describe_parts),
    },
)
