"""The options of the Learn page, and the training plans that they describe.

A plan lists the models to train. There is one for the run on this server, and one for the recorded runs.
"""

from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app.state.controls import Options, choice, integer, pills, selection, stops
from app.state.session import SharedOptions
from app.ui.lazy import lazy_popover
from app.words.i18n import C_, N_, _
from attention_core.experiments import learning
from attention_core.experiments.learning import Plan
from attention_core.learning.defaults import SEEDS, STEPS, TEST_ITEMS, TEST_LENGTHS, VARIANTS
from attention_core.learning.model import ModelSpec, refusal
from attention_core.learning.removed_parts import PARTS, with_parts_removed
from attention_core.learning.tasks import TASKS
from attention_core.limits import current

MAX_LAYERS = 4
MAX_SEEDS = 5
TASK_DEFAULT = "own"
"""Value of the option ``positions`` for the default position encoding of the task."""
CONVOLUTION_SIZE = 3
"""Width of the short convolution in tokens."""


class LearnOptions(Options, prefix="l_"):
    """The options that a link to this page carries in addition to the variants."""

    task = selection({task.key: task.title for task in TASKS.values()}, N_("Task"))
    view = choice(
        {
            "race": N_("Accuracy during training"),
            "attention": N_("Attention during training"),
            "longer": N_("Longer sequences"),
            "capacity": N_("More pairs"),
            "parts": N_("One part removed"),
        },
        N_("View"),
    )
    steps = stops((50, 100, 200, 300, STEPS, 600, 800), STEPS, N_("Training steps"))
    seeds = integer(
        1,
        1,
        MAX_SEEDS,
        N_("Seeds to train"),
        widget=st.slider,
        help=N_("Number of models trained here for each variant, with different initial weights and data."),
    )
    layers = integer(2, 1, MAX_LAYERS, N_("Layers"), widget=st.slider)
    heads = stops(
        (1, 2, 4),
        1,
        N_("Heads"),
        help=N_(
            "The heads share the width of the model, so each head is smaller if there are more heads. Variants that "
            "store a matrix of fixed size per head (the state) then store fewer numbers in total."
        ),
    )
    convolution = choice(
        {"on": N_("on"), "off": N_("off")},
        N_("Short convolution"),
        help=N_(
            "Mixes each query with the queries of the two preceding tokens. Keys and values are treated in the same "
            "way. Each channel is mixed separately."
        ),
    )
    positions = selection(
        {TASK_DEFAULT: N_("as usual for the task"), "none": N_("none"), "learned": N_("learned"), "rotary": N_("RoPE")},
        N_("Positions"),
        help=N_(
            "Position encoding of the model. Without it, a model with a causal mask still knows the order from this "
            "mask."
        ),
    )
    gates = choice(
        {"learned": N_("learned"), "fixed": C_("gates", "fixed")},
        N_("Gates and write strengths"),
        help=N_(
            "A gate sets how much of the state is kept, and a write strength sets how strongly a token changes it. "
            "With “learned”, a trained linear map computes both from each token. With “fixed”, the variant's settings "
            "determine both, and the variant's other trainable parameters stay untrained."
        ),
    )
    measure = choice({"accuracy": N_("Accuracy"), "loss": N_("Loss")}, C_("vertical axis", "Measure"))
    by = choice({"step": N_("Steps"), "seconds": N_("CPU seconds")}, N_("Horizontal axis"))
    layer = pills({i: str(i) for i in range(MAX_LAYERS)}, N_("Layer"), default=1, opening=0)
    checkpoint = integer(STEPS, 0, 800, N_("Training step"))


def opening() -> dict[str, object]:
    """Return the options of a visit without query parameters, by name: the variants of the recorded runs.

    Gated linear attention is left out, because it learns the task only with other settings than its defaults.
    """
    return {"variants": tuple(ac.from_word(word) for word in VARIANTS if word != "gla")}


def views() -> list[str]:
    """Return the views of the chosen task: the tests that its models have, and the shown view."""
    task, shown = LearnOptions.task.value, LearnOptions.view.value
    untested = {"longer": task not in TEST_LENGTHS, "capacity": task not in TEST_ITEMS}
    return [view for view in LearnOptions.view.field().options or () if view == shown or not untested.get(view)]


def show() -> None:
    """Draw the controls of the task and of the models, and those of the axes in the view that has a choice of axes."""
    with st.container(width="content", horizontal=True, vertical_alignment="center", gap="small", key="controls.task"):
        st.caption(_(LearnOptions.task.title), width="content")
        LearnOptions.task.draw(width=210, label_visibility="collapsed")
    lazy_popover(_("Model and training"), _show_setup, key="learn.set_up", icon=":material/tune:", type="tertiary")
    if LearnOptions.view.value == "race":
        lazy_popover(_("Axes"), _show_axes, key="learn.axes", icon=":material/show_chart:", type="tertiary")


def _show_axes() -> None:
    LearnOptions.measure.draw()
    LearnOptions.by.draw()


def _show_setup() -> None:
    left, right = st.columns(2)
    with left:
        LearnOptions.layers.draw()
        LearnOptions.heads.draw()
        LearnOptions.convolution.draw()
        LearnOptions.positions.draw()
        LearnOptions.gates.draw()
    with right:
        LearnOptions.steps.draw()
        LearnOptions.seeds.draw()


def trainable() -> tuple[list[ac.Attention], dict[str, str]]:
    """Return the chosen variants that can be trained on the task, and why the others cannot, by their titles."""
    task, accepted, refused = LearnOptions.task.value, [], {}
    for attention in SharedOptions.variants.value:
        if reason := refusal(ModelSpec(task=task, word=attention.word)):
            refused[attention.title] = reason
        else:
            accepted.append(attention)
    return accepted, refused


def models_per_variant(seeds: int) -> int:
    """Return how many models the shown view trains for each variant; one per seed and removed part."""
    return seeds * (1 + len(PARTS) if LearnOptions.view.value == "parts" else 1)


def max_variants(models: int) -> int:
    """Return how many variants can be trained with ``models`` models each within the app's limit; at least one."""
    return max(1, current().learn_models // models)


def plan_of(options: LearnOptions, words: Sequence[str], seeds: tuple[int, ...]) -> Plan:
    """Return the plan that trains complete models (no part removed), one for each variant and seed."""
    task = options.task
    return learning.plan(
        words,
        task=task,
        steps=min(options.steps, current().learn_steps),
        seeds=seeds,
        lengths=TEST_LENGTHS.get(task, ()),
        more_items=TEST_ITEMS.get(task, ()),
        layers=options.layers,
        heads=options.heads,
        convolution=CONVOLUTION_SIZE if options.convolution == "on" else 0,
        positions=positions_of(options),
        fixed=options.gates == "fixed",
    )


def positions_of(options: LearnOptions) -> str:
    """Return the position encoding of the models."""
    return TASKS[options.task].positions if options.positions == TASK_DEFAULT else options.positions


def _plan(seeds: tuple[int, ...], limit: int) -> Plan:
    """Return the plan for the first ``limit`` variants that can be trained.

    In the view “One part removed”, the plan also trains models with one part removed.
    """
    full_plan = plan_of(LearnOptions.current(), [attention.word for attention in trainable()[0][:limit]], seeds)
    return with_parts_removed(full_plan) if LearnOptions.view.value == "parts" else full_plan


def full_models() -> list[ModelSpec]:
    """Return the complete models (no part removed) of the chosen variants."""
    words = [attention.word for attention in trainable()[0][: max_variants(1)]]
    return [spec.model for spec in plan_of(LearnOptions.current(), words, SEEDS[:1]).specs]


def live_plan() -> Plan:
    """Return the plan that the button “Train on this server” runs."""
    seeds = LearnOptions.seeds.value
    return _plan(tuple(range(seeds)), max_variants(models_per_variant(seeds)))


def recorded_plan() -> Plan:
    """Return the plan whose recorded runs are shown until a visitor trains."""
    return _plan(SEEDS, max_variants(len(SEEDS)))
