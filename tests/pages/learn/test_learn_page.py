"""Tests of the Learn page: recorded results on a first visit, training, variants that are refused, and links."""

import math
from collections import Counter
from functools import partial
from statistics import median
from urllib.parse import parse_qs

import numpy as np
import pytest
from driver import board, charts, go, is_chart, links, numbers, open_page, spoken, visit

import attention_core as ac
from app.figures.theme import style
from app.jobs import dispatch
from app.lessons.lesson import LessonError
from app.lessons.screen import Screen
from app.ui import palette
from app.ui.sources import trained_form
from attention_core.errors import WorkerError
from attention_core.experiments import learning
from attention_core.formatting import percent
from attention_core.inputs import TrainedSource
from attention_core.learning import defaults, recorded_runs
from attention_core.learning.studies import STUDIES, removed_parts_plan, rotary_plan
from attention_core.learning.tasks import TASKS
from pages.learn import shared_runs
from pages.learn.measures import MEASURES
from pages.learn.options import LearnOptions
from pages.learn.outcomes import THRESHOLD, outcomes

open_learn = partial(open_page, "learn")
PAIR = (ac.get("softmax"), ac.get("linear", feature_map="elu+1"))
QUICK = {"l_steps": 50, "variants": PAIR}


def press(at, label):
    next(button for button in at.button if button.label == label).click()
    return at.run()


def texts(at):
    return [each.value for each in at.markdown]


def test_the_first_visit_shows_recorded_runs():
    at = visit("learn", {})
    assert not at.info
    assert not any("No recorded runs" in each.value for each in at.caption)
    rows = recorded_runs.recorded_rows(defaults.default_plan("recall"))
    found = outcomes(rows)
    during, after = (
        {trace["name"]: list(numbers(trace["y"]))[-1] for trace in chart["data"] if trace.get("name")}
        for chart in charts(at)
    )
    assert "Gated linear" not in during, "it learns the task only with other settings"
    for each in [each for each in found if each.word != "gla"]:
        assert during[each.name] == pytest.approx(each.accuracy)
        assert after[each.name] == pytest.approx(each.largest_test("items")[1])
    assert any("Before training, a model also predicts answers" in each.help for each in at.caption)
    assert any(each.value.startswith("Recorded on") for each in at.caption)


def test_the_command_trains_as_many_seeds_as_the_page_shows():
    at = open_page("learn", **{"learn.files": True})
    rows = recorded_runs.recorded_rows(defaults.default_plan("recall"))
    assert f" --seeds {len({row.row.seed for row in rows})} " in at.code[-1].value


def test_the_first_screen_explains_the_order_and_the_failures_of_the_recorded_runs():
    at = open_learn(variants=tuple(map(ac.from_word, defaults.VARIANTS)))
    assert (
        "**Linear learns to recall 4 pairs sooner than softmax. With 24 pairs, only softmax (99.9%) still gets at "
        "least 95% right; Linear gets 88%.**"
    ) in texts(at)
    [below] = [text for text in texts(at) if text.startswith("- **Local with window 16** gets 72% right.")]
    assert below.removeprefix("- ").split("\n- ") == [
        "**Local with window 16** gets 72% right. Its mask hides 43% of the answers. A model that guesses these and "
        "knows all others would get about as many right (70%).",
        "**Gated linear** gets 32% right. By default, its queries and keys can be negative and are not scaled. With "
        "positive queries and keys, or with both scaled to length 1, it reached 95% within 250 steps in other runs.",
    ]
    assert any(each.value.startswith("**Associative recall, 4 pairs.**") for each in at.caption)
    [help_text] = [each.help for each in at.caption if each.help and "A variant has learned the task" in each.help]
    assert "**Linear** (2 of 3 seeds) and **softmax** (1 of 3 seeds)." in help_text
    at = open_learn(l_view="attention", l_layer=1, variants=(ac.get("softmax"), ac.get("linear")))
    [headline] = [text for text in texts(at) if text.startswith("**After 400 steps, a repeated key puts most weight")]
    address = "#?l_view=attention&l_layer=0&variants=softmax&variants=linear"
    assert headline.endswith(f" [Choose layer 1]({address}) to see these weights.**")
    assert any(text.startswith("Sequence (k: key, v: value, ·: blank): `k18 v3 ") for text in texts(at))
    [panels] = [each.proto.body for each in at.get("html") if 'class="checkpoints"' in each.proto.body]
    assert "<br>largest rise: from step 125 to 150" in panels
    assert "<b></b>answer" in panels
    assert "<span>step 400, run 1 of 3</span><span>rows: queries" in panels
    assert "Softmax: 100% correct," in panels
    assert panels.count("<i style=") == 8
    assert '<small style="left:3.12%;top:-2.19%">v3</small>' in panels, "v3 is the second token"
    assert panels.count("<small") == 16, "the token of the row and of the column of each answer"
    assert '<b class="masked"></b>masked' in panels
    assert "<span>0 <b style" in panels, "no weight of softmax and Linear is negative"
    at = open_learn(l_view="attention", l_layer=1, variants=(ac.get("gla"),))
    [panels] = [each.proto.body for each in at.get("html") if 'class="checkpoints"' in each.proto.body]
    assert "<span>negative <b style" in panels
    at = open_learn(l_view="attention", l_task="induction", l_layer=1, variants=(ac.get("softmax"),))
    assert any("(an induction head), in layer 2 of 2: softmax (" in text for text in texts(at))
    [panels] = [each.proto.body for each in at.get("html") if 'class="checkpoints"' in each.proto.body]
    assert "100% of the weight on the answer" in panels
    assert panels.count("<i style=") == 15
    assert "<small" not in panels, "there is no room for so many tokens"
    assert "left:3.12%;top:50.00%;" in panels, "the second symbol follows the first, which is repeated in the middle"
    at = open_learn(l_view="attention", l_task="parity", variants=(ac.get("softmax"),))
    assert not any("puts most weight on" in text for text in texts(at))
    [panels] = [each.proto.body for each in at.get("html") if 'class="checkpoints"' in each.proto.body]
    assert "on the answer" not in panels
    assert "<b></b>" not in panels
    assert any(text.startswith("Sequence: `") for text in texts(at))
    at = open_learn(l_view="attention", l_task="maximum", variants=(ac.get("softmax"),))
    assert not any(text.startswith("Sequence") for text in texts(at)), "its tokens are vectors"


def test_the_result_says_which_variants_have_no_recorded_run():
    at = open_learn(variants=(ac.get("softmax"), ac.get("linear"), ac.get("topk"), ac.get("atrous")))
    sentence = "No recorded runs with these settings: Top-k with k = 8 and Atrous with stride 8."
    assert any(each.value.startswith(sentence) for each in at.caption)


def test_the_recorded_runs_include_the_default_variants_of_their_tasks():
    plan = defaults.default_plan("recall")
    rows = recorded_runs.recorded_rows(plan)
    assert len([row for row in rows if not row.is_test]) == len(plan.specs) * (
        1 + defaults.STEPS // learning.MEASURE_INTERVAL
    )
    assert len([row for row in rows if row.is_test]) == len(plan.specs) * len(plan.tests)
    with_matrices = [row for row in rows if row.matrices is not None]
    assert {row.spec.seed for row in with_matrices} == {defaults.SEEDS[0]}
    for row in with_matrices:
        assert row.matrices.shape == (2, 32, 32)
    softmax = [row.matrices for row in with_matrices if row.spec.model.word == "softmax"]
    for matrices in softmax:
        assert matrices.sum(-1) == pytest.approx(1.0, abs=0.15)  # stored with 7 bits


def test_a_task_without_tests_of_more_items_has_no_finding_about_pairs():
    at = open_learn(l_view="capacity", l_task="parity")
    assert any("are not tested with more items" in each.value for each in at.info)
    assert "pairs" not in spoken(at)


@pytest.mark.parametrize(
    ("task", "view", "names"),
    [
        ("recall", "race", "longer capacity parts"),
        ("parity", "race", "longer parts"),
        ("digits", "race", "parts"),
        ("digits", "longer", "longer parts"),
    ],
)
def test_only_the_shown_view_and_views_with_tests_of_the_task_are_offered(task, view, names):
    at = open_learn(l_task=task, l_view=view)
    [control] = [each for each in at.segmented_control if each.key == "l_view"]
    assert control.options == [LearnOptions.view.label_of(each) for each in ["race", "attention", *names.split()]]
    assert control.value == view


def test_deltanet_without_parity_names_the_write_strengths_with_which_it_learns_it():
    hint = "write strengths up to 2 instead of 1"
    at = open_learn(l_task="parity", variants=(ac.get("softmax"), ac.get("deltanet")))
    assert any(hint in text for text in texts(at))
    for variants in ((ac.get("softmax"),), (ac.get("deltanet", strength=2.0),)):
        assert not any(hint in text for text in texts(open_learn(l_task="parity", variants=variants)))


@pytest.mark.parametrize("view", ["race", "attention", "longer", "capacity", "parts"])
@pytest.mark.parametrize("task", ["recall", "maximum"])
def test_every_view_opens_without_a_run(view, task):
    at = open_learn(l_view=view, l_task=task)
    assert any(TASKS[task].summary in each.value for each in at.caption)


def test_unrecorded_settings_show_the_training_button():
    at = open_learn(l_layers=1, **QUICK)
    assert "No run is recorded with these settings." in at.info[0].value
    assert not charts(at)


def test_the_result_comes_first_and_all_controls_come_before_the_picture():
    at = visit("learn", {})
    kinds = [
        ("chart" if is_chart(each) else each.type, getattr(each, "value", None) or getattr(each, "label", ""))
        for each in at.main
    ]
    sentence = next(
        i
        for i, (_kind, text) in enumerate(kinds)
        if str(text).startswith("**Linear learns to recall 4 pairs sooner than softmax")
    )
    picture = next(i for i, (kind, _text) in enumerate(kinds) if kind == "chart")
    button = next(i for i, (_kind, text) in enumerate(kinds) if text == "Train on this server")
    chip = next(i for i, (_kind, text) in enumerate(kinds) if text == "Local · window 16")
    assert sentence < min(button, chip)
    assert max(button, chip) < picture
    assert not any(kind in ("button", "button_group", "selectbox") for kind, _text in kinds[picture:])


def test_the_button_shows_the_training_time():
    at = open_learn(l_steps=200, l_seeds=2, variants=(ac.get("softmax"), ac.get("cosine")))
    [button] = [each for each in at.button if each.label == "Train on this server"]
    [end] = [
        row.row.seconds
        for row in recorded_runs.recorded_rows(learning.plan(["softmax"], seeds=[0]))
        if row.row.step == 400 and not row.is_test
    ]
    assert button.help == (
        "This run trains 4 models. The training time is known from recorded runs for 2 of them: about "
        f"{math.ceil(end)} CPU seconds in total."
    )


def test_the_chart_of_accuracy_shows_what_counts_as_learned():
    chart, _ = charts(visit("learn", {}))
    drawn = {trace["name"]: trace for trace in chart["data"] if trace.get("name")}
    assert set(numbers(drawn["learned = 95%"]["y"])) == {THRESHOLD}
    assert set(numbers(drawn["guessing an answer<br>from the sequence = 25%"]["y"])) == {0.25}
    assert chart["layout"]["yaxis"]["tickformat"] == "~%"
    chart, _ = charts(open_learn(l_measure="loss", variants=PAIR))
    assert not any(trace.get("name") == "learned = 95%" for trace in chart["data"])
    assert "tickformat" not in chart["layout"]["yaxis"]


@pytest.mark.parametrize("task", ["characters", "digits"])
def test_the_chart_of_a_task_with_held_out_examples_shows_no_threshold(task):
    at = open_learn(l_task=task, variants=(ac.get("softmax"), ac.get("linear")))
    [chart] = charts(at)
    assert not any("learned" in str(trace.get("name")) for trace in chart["data"])
    assert not any("learned" in text for text in texts(at))
    assert not any("A variant has learned" in (each.help or "") for each in at.caption)


def test_lines_of_different_colours_are_solid():
    at = visit("learn", {})
    chart, _ = charts(at)
    dashes = {trace["name"]: trace["line"]["dash"] for trace in chart["data"] if trace.get("name")}
    assert dashes["DeltaNet"] == dashes["Softmax"] == "solid"
    assert dashes["learned = 95%"] == "dot"
    [note] = [each.value for each in at.caption if each.value.startswith("Each line is")]
    assert note.endswith("to see the range of its runs.")


def test_names_of_guides_do_not_overlap_lines():
    drawn = [
        charts(visit("learn", {}))[0],
        *(charts(open_learn(variants=PAIR, **own))[0] for own in ({"l_view": "longer"}, {"l_task": "parity"})),
    ]
    sides = {trace["name"]: trace.get("textposition") for chart in drawn for trace in chart["data"] if "name" in trace}
    assert sides["learned = 95%"] == sides["guessing"] == "bottom right"
    assert sides["guessing = 50%"][-1] == "bottom left"
    assert sides["guessing an answer<br>from the sequence = 25%"][-1] == "bottom left", "Gated linear is above it"
    [chart] = charts(open_learn(l_task="induction"))
    [guess] = [trace for trace in chart["data"] if str(trace.get("name")).endswith("= 6.2%")]
    assert guess["textposition"][-1] == "top left", "the line of Gated linear is below it"


def test_guesses_of_selective_copying_are_guesses_of_any_symbol():
    at = open_learn(l_task="copying", variants=(ac.get("softmax"),))
    assert "guessing = 6.2%" in [trace.get("name") for trace in charts(at)[0]["data"]]
    assert not any("Before training, a model also predicts answers" in each.help for each in at.caption if each.help)


def test_the_names_of_variants_that_learn_the_task_are_next_to_their_rises():
    chart, _ = charts(visit("learn", {}))
    names = {each["text"].split("</span> ")[-1]: each.get("xref") == "paper" for each in chart["layout"]["annotations"]}
    assert {"Local"} <= {name for name, is_at_end in names.items() if is_at_end}
    assert "Gated DeltaNet" in {name for name, is_at_end in names.items() if not is_at_end}


def test_the_view_of_longer_sequences_shows_recorded_runs_with_rotary_positions():
    settings = {"l_view": "longer", "l_positions": "rotary", "variants": (ac.get("softmax"), ac.get("relu2"))}
    at = open_learn(**settings)
    assert not at.info
    drawn = {trace["name"]: trace for trace in charts(at)[0]["data"] if trace.get("name")}
    for each in outcomes(recorded_runs.recorded_rows(rotary_plan())):
        x, y = (list(numbers(drawn[each.name][axis])) for axis in "xy")
        assert (x[-1], y[-1]) == pytest.approx(each.largest_test("length"))


def test_the_answers_that_masks_hide_in_longer_sequences_are_listed_below_the_chart():
    hidden = "At 256 tokens, the mask of Local with window 16 hides 95% of the answers"
    for key, listed in (("local", True), ("linear", False)):
        found = texts(open_learn(l_view="longer", variants=(ac.get("softmax"), ac.get(key))))
        assert any(hidden in text for text in found) == listed


@pytest.mark.parametrize(("shown", "other"), [("own", "with RoPE"), ("rotary", "without positions")])
def test_dashed_lines_show_the_models_with_the_other_positions(shown, other):
    at = open_learn(l_view="longer", l_positions=shown, variants=(ac.get("softmax"), ac.get("relu2")))
    plans = rotary_plan(), STUDIES["relu2_longer"]()[0]
    found = outcomes(recorded_runs.recorded_rows(plans[shown == "rotary"]))
    [chart] = charts(at)
    dashed = {trace["name"]: trace for trace in chart["data"] if trace.get("name") and trace["line"]["dash"] == "dash"}
    own = {trace["name"]: trace for trace in chart["data"] if trace.get("name")}
    assert list(dashed) == [f"{each.title} {other}" for each in found]
    for each, line in zip(found, dashed.values(), strict=True):
        assert list(numbers(line["y"]))[-1] == pytest.approx(each.largest_test("length")[1])
        assert line["line"]["color"] == own[each.name]["line"]["color"]
        assert own[each.name]["line"]["dash"] == "solid"


def test_the_view_of_more_to_remember_shows_the_memory_of_the_chosen_heads():
    pair = {"l_view": "capacity", "l_steps": 50, "variants": PAIR}
    [memory] = charts(open_learn(**pair | {"l_steps": 400}))
    assert memory["layout"]["xaxis"]["title"]["text"] == "numbers that a layer stores after 128 tokens (log scale)"
    points = {trace["name"]: list(numbers(trace["x"])) for trace in memory["data"]}
    assert points == {"Softmax": [16384], "Linear": [4160]}
    at = press(open_learn(l_heads=4, **pair), "Train on this server")
    assert {each.spec.model.heads for each in at.session_state["learn.run"].rows} == {4}
    [linear] = [trace for trace in charts(at)[0]["data"] if trace["name"] == "Linear"]
    assert list(numbers(linear["x"])) == [1088]
    assert any("4 heads of size 16" in each.value for each in at.caption)


def test_models_trained_by_visitors_are_compared():
    settings = {"l_view": "longer", "l_steps": 50, "l_layers": 1, "variants": (ac.get("cosine"),)}
    names = lambda at: [trace.get("name") for trace in charts(at)[0]["data"]]  # noqa: E731
    at = press(open_learn(l_positions="rotary", **settings), "Train on this server")
    assert "Cosine without positions" not in names(at)
    at = press(open_learn(**settings), "Train on this server")
    assert "Cosine with RoPE" in names(at)


def test_the_view_of_parts_shows_the_recorded_accuracy_without_each_part():
    at = open_learn(l_view="parts", variants=(ac.get("softmax"), ac.get("linear"), ac.get("local")))
    final = {
        (row.spec.model.word, row.spec.model.convolution, row.spec.model.layers): []
        for row in recorded_runs.recorded_rows(removed_parts_plan())
    }
    for row in recorded_runs.recorded_rows(removed_parts_plan()):
        if row.row.step == row.spec.steps and not row.is_test:
            final[row.spec.model.word, row.spec.model.convolution, row.spec.model.layers].append(row.row.accuracy)
    for word, chart in zip(("softmax", "linear"), charts(at), strict=True):
        shares = [percent(median(final[word, *part])) for part in ((3, 2), (0, 2), (3, 1))]
        assert [trace["name"] for trace in chart["data"] if trace.get("name")] == [
            f"all parts: {shares[0]}", f"no short convolution: {shares[1]}", f"no last layer: {shares[2]}"
        ]  # fmt: skip
    assert any(
        "No runs with a part removed are recorded for Local with window 16." in each.value for each in at.caption
    )
    assert any(text.startswith("**Without the short convolution, accuracy falls ") for text in texts(at))


def test_a_variant_keeps_its_colour_among_the_lines_without_a_part():
    [chart] = charts(open_learn(l_view="parts", variants=(ac.get("gated_deltanet"),)))
    lines = {trace["name"].partition(":")[0]: trace["line"] for trace in chart["data"] if trace.get("name")}
    assert lines["all parts"]["color"] == style(palette.index("gated_deltanet")).colour
    assert lines["all parts"]["dash"] == "solid"
    assert len({line["color"] for line in lines.values()}) == len(lines) == 4


@pytest.mark.parametrize(("task", "top"), [("characters", 0.62), ("recall", 1.03)])
def test_the_axis_of_accuracies_ends_near_the_largest_one(task, top):
    figure = charts(open_learn(l_task=task))[0]
    largest = max(max(numbers(trace["y"])) for trace in figure["data"] if trace.get("name"))
    assert figure["layout"]["yaxis"]["range"][1] == top > largest > top - 0.2


def test_the_button_trains_every_model_of_the_view_of_parts():
    at = press(open_learn(l_view="parts", l_steps=50, variants=(ac.get("softmax"),)), "Train on this server")
    rows = at.session_state["learn.parts.run"].rows
    assert {(row.spec.model.convolution, row.spec.model.layers) for row in rows} == {(3, 2), (0, 2), (3, 1)}
    [chart] = charts(at)
    assert len([trace for trace in chart["data"] if trace.get("name")]) == 3


def test_the_view_of_parts_says_only_that_no_part_was_removed_if_only_complete_models_are_recorded():
    at = open_learn(l_view="parts", l_task="digits", variants=(ac.get("softmax"), ac.get("linear")))
    assert [each.value for each in at.info] == [
        "No runs with a part removed are recorded for this task and these variants. Press “Train on this server” to "
        "train them."
    ]
    assert not any("medians" in each.value or each.value.startswith("Recorded on") for each in at.caption)
    assert not charts(at)


def test_the_view_of_parts_without_recorded_runs_shows_the_button():
    at = open_learn(l_view="parts", l_layers=3, variants=(ac.get("softmax"), ac.get("linear")))
    assert any("No run is recorded with these settings." in each.value for each in at.info)
    assert not charts(at)


def test_training_shows_the_same_numbers_as_the_library():
    at = press(open_learn(**QUICK), "Train on this server")
    rows = at.session_state["learn.run"].rows
    plan = learning.plan(
        [each.word for each in PAIR],
        steps=50,
        lengths=defaults.TEST_LENGTHS["recall"],
        more_items=defaults.TEST_ITEMS["recall"],
    )
    expected = []
    while tasks := learning.next_tasks(plan, expected):
        expected += learning.run(tasks[0])
    assert sorted(map(numbers_of, rows)) == sorted(map(numbers_of, expected))
    assert len([each for each in rows if each.checkpoint is not None]) == len(plan.specs)
    assert any(each.value.startswith("Trained on this server.") for each in at.caption)
    at.session_state["l_view"] = "attention"
    assert not any("first seed" in each.value for each in at.run().caption)


def numbers_of(found):
    row = found.row
    return row.variant, row.step, row.length, row.items, row.accuracy, row.loss


def test_models_without_tests_have_one_chart():
    at = open_learn(l_convolution="off", variants=PAIR)
    assert len(charts(at)) == 1
    assert not at.info
    assert len(charts(open_learn(variants=PAIR))) == 2


def test_models_that_a_visitor_trains_are_trained_once_for_all_visitors(monkeypatch):
    calls, run = Counter(), learning.run

    def count(task, *, load):
        calls[task.spec.model.word, getattr(task, "until", "test")] += 1
        return run(task, load=load)

    monkeypatch.setattr(learning, "run", count)
    settings = {"l_steps": 50, "l_layers": 1, "l_convolution": "off"}
    one = press(open_learn(variants=(ac.get("relu2"), ac.get("local")), **settings), "Train on this server")
    assert set(calls) == {(word, at) for word in ("relu2", "local") for at in (0, 25, 50, "test")}
    other = press(open_learn(variants=(ac.get("local"), ac.get("sigmoid")), **settings), "Train on this server")
    assert set(calls.values()) == {1}
    shared = [
        sorted(numbers_of(each) for each in at.session_state["learn.run"].rows if each.row.variant.startswith("local"))
        for at in (one, other)
    ]
    assert shared[0] == shared[1]
    assert len(shared[0]) == 3 + len(one.session_state["learn.run"].request.tests)


def test_a_visitor_who_starts_later_continues_where_the_first_visitor_is():
    plan = learning.plan(["softmax", "cosine"], steps=60, every=20, length=16, lengths=(32,))
    first: list[learning.LearnRow] = []
    for _turn in range(3):
        first += learning.run(shared_runs.next_tasks(plan, first)[0])
    done = shared_runs.next_tasks(plan, first)
    later: list[learning.LearnRow] = []
    assert shared_runs.next_tasks(plan, later) == done
    assert sorted(map(numbers_of, later)) == sorted(map(numbers_of, first))
    later += learning.run(done[0])
    later += learning.run(done[0])  # The first visitor's result of the same task arrives again.
    ahead = shared_runs.next_tasks(plan, later)
    assert shared_runs.next_tasks(plan, first) == ahead
    assert len(first) == len(later) == 4
    while tasks := shared_runs.next_tasks(plan, first):
        first += learning.run(tasks[-1])
    alone: list[learning.LearnRow] = []
    while tasks := learning.next_tasks(plan, alone):
        alone += learning.run(tasks[0])
    assert sorted(map(numbers_of, first)) == sorted(map(numbers_of, alone))


def test_a_training_whose_worker_is_lost_keeps_its_curves_and_continues(monkeypatch):
    calls, run = Counter(), learning.run

    def lose_once(task, *, load):
        until = getattr(task, "until", "test")
        calls[task.spec.model.word, until] += 1
        if (until, sum(calls[word, 50] for word in ("cosine", "softpick"))) == (50, 1):
            raise WorkerError("The worker is lost.")
        return run(task, load=load)

    monkeypatch.setattr(learning, "run", lose_once)
    pair = (ac.get("cosine"), ac.get("softpick"))
    at = press(open_learn(variants=pair, l_steps=50), "Train on this server")
    tests = "The trained models are tested when training is complete."
    assert [each.value for each in at.info] == [tests, "The worker is lost."]
    [chart] = charts(at)
    drawn = {trace["name"]: list(numbers(trace["x"])) for trace in chart["data"] if trace.get("name") in titles(pair)}
    assert drawn == {title: [0, 25] for title in titles(pair)}
    at = press(at, "Continue")
    assert not at.info
    assert sorted(calls.values()) == [1] * 7 + [2]  # Only the task that was lost ran twice.
    rows = at.session_state["learn.run"].rows
    assert {(each.row.variant, each.row.step) for each in rows if not each.is_test} == {
        (word, step) for word in ("cosine", "softpick") for step in (0, 25, 50)
    }


def titles(attentions):
    return [each.title for each in attentions]


@pytest.mark.parametrize("measure", ["accuracy", "loss"])
def test_a_loss_that_is_not_finite_is_reported_and_the_other_models_go_on(monkeypatch, measure):
    monkeypatch.setattr(learning, "rate", lambda model: 1e30 if model.word == "linear" else 1e-3)
    at = press(open_learn(l_measure=measure, **QUICK), "Train on this server")
    assert any("The loss of Linear is no longer finite, so training has failed." in text for text in texts(at))
    rows = at.session_state["learn.run"].rows
    assert {each.row.variant for each in rows if each.row.step == 50 and not each.is_test} == {"softmax", "linear"}
    assert charts(at)


def test_a_trained_model_opens_on_matrices_without_another_training(monkeypatch):
    at = press(open_learn(**QUICK), "Train on this server")
    found = {each.label: each for each in links(at)}
    assert {"Softmax", "Linear"} <= set(found)
    weights = at.session_state["learn.run"].rows
    last = max((each for each in weights if each.row.variant == "softmax" and not each.is_test), key=by_step)
    monkeypatch.setattr(dispatch, "stream", None)
    go(at, "matrices", parse_qs(found["Softmax"].query_string))
    record = TrainedSource(last.spec, 0, 1, weights=last.checkpoint.weights).load()
    expected = ac.get("softmax").weights(record.q, record.k, causal=True)[0].numpy()
    drawn = board(at, "matrices.board")[1]["softmax"][1]
    assert np.nan_to_num(drawn) == pytest.approx(expected, abs=2e-3)
    assert np.nan_to_num(drawn) == pytest.approx(last.matrices[1].astype(float), abs=2e-3)


def test_curves_of_models_trained_on_matrices_need_no_training():
    settings = {
        "lengths": defaults.TEST_LENGTHS["recall"],
        "more_items": defaults.TEST_ITEMS["recall"],
        "steps": 50,
        "layers": 1,
    }
    plan = learning.plan(["softmax"], seeds=(3,), **settings)
    [spec] = plan.specs
    dispatch.cache_rows("learning", trained_form.task_of(spec), learning.run(trained_form.task_of(spec)))
    rows: list[learning.LearnRow] = []
    [task] = shared_runs.next_tasks(plan, rows)
    assert isinstance(task, learning.TestTask)
    assert [each.row.step for each in rows] == [0, 25, 50]
    alone: list[learning.LearnRow] = []
    while isinstance(task := learning.next_tasks(plan, alone)[0], learning.TrainTask):
        alone += learning.run(task)
    assert list(map(numbers_of, rows)) == list(map(numbers_of, alone))
    trained_form.cache_weights(rows[-1])
    assert trained_form.cached_row(spec).row == rows[-1].row


@pytest.mark.parametrize(("task", "pages"), [("digits", ["matrices", "picture"]), ("recall", ["matrices"])])
def test_models_of_digits_open_on_picture_too(task, pages):
    at = open_learn(l_task=task, variants=(ac.get("softmax"),))
    found = links(at)
    assert [each.page for each in found] == pages
    for each in found:
        query = parse_qs(each.query_string)
        assert (query["input"], query["trained"][:2], query["layer"]) == (["trained"], [task, "softmax"], ["1"])


def by_step(found):
    return found.row.step


def test_an_untrained_model_has_no_link():
    at = open_learn(l_layers=1, **QUICK)
    assert not links(at)


def test_variants_that_cannot_be_trained_are_explained():
    at = open_learn(variants=(ac.get("softmax"), ac.get("nystrom")))
    assert any("Nyström cannot be trained on this task" in each.value for each in at.caption)
    at = open_learn(variants=(ac.get("softmax"), ac.get("nystrom")), l_task="digits")
    assert not any("cannot be trained" in each.value for each in at.caption)


@pytest.mark.parametrize("bad", [{"l_steps": 7}, {"l_task": "sorting"}, {"l_layers": 99}, {"l_view": "nothing"}])
def test_a_bad_link_opens_the_page_with_its_default(bad):
    at = open_learn(**{name: str(value) for name, value in bad.items()})
    assert not at.exception


def test_a_lesson_can_ask_only_about_recorded_runs():
    screen = Screen.from_link("learn?variants=softmax")
    find = MEASURES["accuracy"].find
    assert find(screen, ac.get("softmax")) == pytest.approx(100.0, abs=0.5)
    with pytest.raises(LessonError, match="No runs of this variant are recorded"):
        find(screen, ac.get("sigmoid"))
    with pytest.raises(LessonError, match="No runs of this variant are recorded"):
        find(Screen.from_link("learn?l_layers=3"), ac.get("softmax"))
    assert MEASURES["longest_accuracy"].find(screen, ac.get("local")) < 20
