"""Tests that the statements in each step of the included lessons are true of the numbers on the step's screens."""

import math
import re

import numpy as np
import pytest
from driver import lines_of, message, table
from test_lessons import NUMBERS, STEPS, open_lesson, press, step_of

import attention_core as ac
from app.jobs import dispatch
from app.lessons import answer, draft
from app.lessons.lesson import Step
from app.lessons.screen import Screen
from app.words.labels import label
from attention_core import metrics, registry
from attention_core.analysis.denoised_image import denoise
from attention_core.experiments import entropy_length
from attention_core.experiments.error import ErrorTask, points
from attention_core.experiments.leaks import tasks as leak_tasks
from attention_core.experiments.swap import COPY_DISTANCE
from attention_core.experiments.swap.derived import error_points
from attention_core.learning import recorded_runs
from attention_core.learning.defaults import SEEDS
from attention_core.metrics.image_quality import psnr
from pages.learn.options import LearnOptions, plan_of
from pages.model import forecast
from pages.model.measures import _question, _rows
from pages.model.words import GUESS_LOSS


def screen_of_step(key, place):
    step = step_of(key, place)
    return Screen.from_link(step.at)


def screen_of_answer(key, place):
    step = step_of(key, place)
    return Screen.from_link(step.at, step.reveal)


def number(screen, measure, key=""):
    found = answer.find(Step(at=f"{screen.page}?", ask="?", answer=f"{measure} {key}".strip()))
    return found.number(screen)


def passport(screen, key):
    return screen.compare(screen.variant(key)).passport


def uniform(screen):
    """Return the output error of uniform attention, in percent."""
    return 100 * screen.compare(screen.variant("softmax")).uniform_error


def median_error(screen, attention):
    task = ErrorTask(source=screen.chosen.source, word=attention.word, head=screen.chosen.head, causal=False)
    [point] = points(dispatch.rows("error", task), "output")
    return point.middle


def moved(screen, attention, token):
    [task] = leak_tasks(screen.chosen.source, [attention.word], head=screen.chosen.head)
    [found] = dispatch.rows("leaks", task)
    return found.earlier_changes(token), found.leaking_share


def denoised(screen, key):
    source = screen.chosen.source
    return denoise(source.whole(), source.clean(), screen.variant(key))


# Each function below checks the statements of one step of a lesson, as conditions on numbers.


def softmax_1():
    spread, sharp = (passport(each("softmax", 1), "softmax").entropy for each in (screen_of_step, screen_of_answer))
    assert f"{spread:.2f} {math.exp(spread):.0f} {sharp:.2f} {math.exp(sharp):.0f}" == "4.40 81 2.39 11"
    assert screen_of_step("softmax", 1).chosen.qkv.n == 106
    assert f"{math.log(106):.2f}" == "4.66"
    weights = screen_of_answer("softmax", 1).compare(ac.get("softmax")).weights
    places = np.arange(106)
    near = (np.abs(places[:, None] - places) <= 8) | (places == 0)
    assert (weights * near).sum() > 0.8 * weights.sum(), "it attends mainly to nearby tokens and [CLS]"


def softmax_2():
    screen = screen_of_answer("softmax", 2)
    weights = np.sort(screen.compare(screen.variant("softmax")).weights)[:, ::-1]
    inside = weights[:, :8].sum(-1).mean()
    assert f"{inside:.0%}" == "81%"
    assert number(screen, "misplaced", "topk") == pytest.approx(100 * (1 - inside)), "the weight outside the 8 largest"
    assert np.allclose(np.nansum(screen.compare(screen.variant("topk")).weights, -1), 1)


def softmax_3():
    before, after = screen_of_step("softmax", 3), screen_of_answer("softmax", 3)
    assert number(before, "output_error", "topk") < uniform(after) < number(after, "output_error", "topk")
    assert f"{number(before, 'output_error', 'topk'):.0f} {uniform(after):.0f}" == "24 84"
    assert np.allclose(np.nanmax(after.compare(after.variant("topk")).weights, -1), 1)
    weights = before.compare(before.variant("softmax")).weights
    v = before.chosen.qkv.v[before.chosen.head].double().numpy()
    outputs, single = weights @ v, v[weights.argmax(-1)]
    lengths = [np.linalg.norm(each, axis=-1).mean() for each in (outputs, single)]
    assert [f"{each:.1f}" for each in lengths] == ["1.6", "2.5"]


def softmax_4():
    before, after = screen_of_step("softmax", 4), screen_of_answer("softmax", 4)
    unmasked, weights = (each.compare(each.variant("softmax")).weights for each in (before, after))
    assert [int(np.isfinite(weights[row]).sum()) for row in (0, -1)] == [1, 106]
    assert f"{np.triu(unmasked, 1).sum(-1).mean():.0%}" == "63%"
    assert before.chosen.qkv.names[0] == "[CLS]"
    assert [f"{each[:, 0].mean():.0%}" for each in (unmasked, weights)] == ["25%", "57%"]
    assert f"{passport(before, 'softmax').entropy:.2f}" == "2.39"
    assert passport(after, "softmax").entropy < passport(before, "softmax").entropy


def flat_1():
    before, after = screen_of_step("flat", 1), screen_of_answer("flat", 1)
    row = before.compare(before.variant("softmax")).weights.max(-1)
    assert row.max() > 0.5, "there is a row with one strongly coloured cell"
    most = math.log(before.chosen.qkv.n - 2)
    assert passport(after, "linear").entropy > 0.99 * most, "linear attention's rows are almost uniform"
    assert passport(before, "softmax").entropy < 0.6 * most
    assert f"{passport(before, 'softmax').entropy:.2f} {most:.2f}" == "2.64 4.64"
    assert before.chosen.qkv.n - 2 == 104


def flat_2():
    screen = screen_of_answer("flat", 2)
    assert screen.chosen.qkv.q.shape[-1] == 32
    assert number(screen, "effective_rank", "linear") < 32 / 4, "far fewer features matter"
    assert f"{number(screen, 'effective_rank', 'softmax'):.1f}" == "51.8"


def flat_3():
    screen = screen_of_answer("flat", 3)
    others = ("linear", "efficient", "taylor2")
    assert passport(screen, "performer").entropy < min(passport(screen, key).entropy for key in others)
    assert number(screen, "output_error", "performer") > max(number(screen, "output_error", key) for key in others)


def flat_4():
    sharp, spread = screen_of_step("flat", 4), screen_of_answer("flat", 4)
    n = sharp.chosen.qkv.n - 2
    assert passport(spread, "softmax").entropy > 0.9 * math.log(n) > passport(sharp, "softmax").entropy
    assert number(spread, "output_error", "linear") < number(sharp, "output_error", "linear")
    assert f"{number(sharp, 'output_error', 'linear'):.0f} {uniform(sharp):.0f} {uniform(spread):.0f}" == "82 84 47"
    for screen in (sharp, spread):
        assert 0.9 * uniform(screen) < number(screen, "output_error", "linear") < uniform(screen), "a little better"


def window_and_sink_1():
    before, after = screen_of_step("window_and_sink", 1), screen_of_answer("window_and_sink", 1)
    narrow, wide = number(before, "output_error", "local"), number(after, "output_error", "local")
    assert f"{narrow:.0f}" == "92"
    assert 25 < wide < 0.7 * narrow, "much is recovered, but by no means all"
    weights, places = before.compare(before.variant("softmax")).weights, np.arange(104)
    near = np.abs(places[:, None] - places) <= 16
    assert (weights * near).sum() > 0.9 * weights.sum(), "the weight lies near the diagonal"
    assert not after.shared.special
    assert any(after.chosen.qkv.special)
    assert number(after, "matrix_error", "local") < 0.3 * wide / 100, "the weights shown say little about the rest"


def window_and_sink_2():
    hidden, shown = screen_of_answer("window_and_sink", 1), screen_of_step("window_and_sink", 2)
    assert shown.chosen.qkv.tokens[0] == "[CLS]"
    assert number(shown, "matrix_error", "local") > 4 * number(hidden, "matrix_error", "local")
    weights = shown.compare(shown.variant("softmax")).weights
    assert (weights[20:, 0] > 2 / len(weights)).mean() > 0.8, "the column is dark from top to bottom"
    assert weights[1:, 0].mean() == pytest.approx(number(shown, "sink") / 100, abs=1e-6)


def window_and_sink_3():
    screen = screen_of_answer("window_and_sink", 3)
    local, sink = screen.variant("local"), screen.variant("sink")
    assert f"{number(screen, 'output_error', 'local'):.0f} {number(screen, 'output_error', 'sink'):.0f}" == "49 9"
    assert sink.params.sinks == 4
    assert local.params.window == sink.params.window == 16
    assert number(screen, "output_error", "sink") < 0.3 * number(screen, "output_error", "local")


def window_and_sink_4():
    screen = screen_of_answer("window_and_sink", 4)
    local, sink = (number(screen, "output_error", key) for key in ("local", "sink"))
    assert f"{local:.0f}" == "44"
    assert 0.85 * local < sink < local, "the sinks recover little"
    assert number(screen, "sink") < 2, "this head has no sink"


def local_then_atrous_1():
    before, after = screen_of_step("local_then_atrous", 1), screen_of_answer("local_then_atrous", 1)
    n = after.chosen.qkv.n
    for screen, w in ((before, 16), (after, 8)):
        allowed = sum(min(i, w) + 1 + min(n - 1 - i, w) for i in range(n))
        assert number(screen, "pairs", "local") == pytest.approx(100 * allowed / n**2)
    assert f"{17 / n:.0%}" == "16%"


def local_then_atrous_2():
    before, after = screen_of_step("local_then_atrous", 2), screen_of_answer("local_then_atrous", 2)
    n = after.chosen.qkv.n
    assert n - 1 == 105, "the distance from the first token to the last"
    assert number(before, "depth", "local") == math.ceil((n - 1) / 16)
    assert number(after, "depth", "local") == math.ceil((n - 1) / 4), "the reach grows by one window per layer"


def connected(n, window, stride):
    """Return the pairs connected by a local layer followed by an atrous layer."""
    i = np.arange(n)
    distance = np.abs(i[:, None] - i)
    return ((distance % stride == 0).astype(int) @ (distance <= window).astype(int)) > 0


def local_then_atrous_3():
    before, after = screen_of_step("local_then_atrous", 3), screen_of_answer("local_then_atrous", 3)
    assert number(before, "complete") is None, "atrous alone never reaches the tokens in between"
    found = connected(after.chosen.qkv.n, 4, 8)
    assert number(after, "connected") == pytest.approx(100 * found.mean())
    i, j = np.nonzero(~found)
    n = len(found)
    assert np.all((np.minimum(i, n - 1 - i) < 8) | (np.minimum(j, n - 1 - j) < 8)), "what is left lies at the edges"


def local_then_atrous_4():
    wide, narrow = screen_of_step("local_then_atrous", 4), screen_of_answer("local_then_atrous", 4)
    n = narrow.chosen.qkv.n
    assert number(narrow, "connected") == pytest.approx(100 * connected(n, 2, 8).mean())
    i, j = np.nonzero(~connected(n, 2, 8)[16 : n - 16, 16 : n - 16])
    assert set((i - j) % 8) == {3, 4, 5}, "half-way between two strides"
    assert number(wide, "connected") > 90


def nystrom_performer_1():
    screen = screen_of_answer("nystrom_performer", 1)
    assert screen.chosen.qkv.n == 106
    assert {math.floor(106 / 16), math.ceil(106 / 16)} == {6, 7}, "tokens of a landmark"
    assert screen.variant("nystrom").params.landmarks == 16
    assert f"{uniform(screen):.0f}" == "84"
    assert 0.85 * uniform(screen) < number(screen, "output_error", "nystrom") < uniform(screen), "a little better"


def nystrom_performer_2():
    screen = screen_of_answer("nystrom_performer", 2)
    assert screen.variant("performer").params.features == 4 * screen.variant("nystrom").params.landmarks
    assert number(screen, "output_error", "performer") > number(screen, "output_error", "nystrom")


def nystrom_performer_3():
    screen = screen_of_answer("nystrom_performer", 3)
    errors = [median_error(screen, ac.get("nystrom", landmarks=m)) for m in (4, 8, 16, 32, 64)]
    assert errors[-1] < 0.5 * errors[0], "it falls overall"
    assert errors[1] < errors[2], "it is higher with 16 landmarks than with 8"
    assert screen.variant("performer").params.features == 256
    assert screen.variant("nystrom").params.landmarks == 16
    assert median_error(screen, screen.variant("performer")) > uniform(screen) / 100


def nystrom_performer_4():
    screen, before = screen_of_answer("nystrom_performer", 4), screen_of_step("nystrom_performer", 3)
    rank = number(Screen("matrices", screen.values | {"variants": screen.shared.variants}), "effective_rank", "softmax")
    assert rank < 0.25 * number(Screen("matrices", before.values), "effective_rank", "softmax")
    for key in ("nystrom", "performer"):
        assert median_error(screen, screen.variant(key)) < uniform(screen) / 100, "both beat the plain mean"
    q, k, v = (each[screen.chosen.head] for each in (screen.chosen.qkv.q, screen.chosen.qkv.k, screen.chosen.qkv.v))
    weights = screen.variant("softmax").weights(q, k).double()
    left, values, right = weights.svd()
    best = left[:, :16] * values[:16] @ right[:, :16].mT
    error = metrics.relative_error(best @ v.double(), weights @ v.double())
    assert error < 0.1 * median_error(screen, screen.variant("nystrom")), "another matrix of rank 16 is far closer"


def pooling_1():
    screen = screen_of_answer("pooling", 1)
    n, m = screen.chosen.qkv.n, screen.variant("nystrom").params.landmarks
    assert {math.floor(n / m), math.ceil(n / m)} == {3, 4}
    for key in ("softmax", "local"):
        assert moved(screen, screen.variant(key), 20)[1] == 0
    assert moved(screen, screen.variant("nystrom"), 20)[0] == 20


def pooling_2():
    screen = screen_of_answer("pooling", 2)
    assert len(screen.shared.variants) == 7
    leaking = {each.key for each in screen.shared.variants if moved(screen, each, 20)[1] > 0}
    assert leaking == {"nystrom", "linformer", "funnel"}
    assert screen.variant("linformer").params.rank == 16
    assert screen.variant("funnel").params.stride == 4
    assert screen.variant("topk").params.k == 8


def pooling_3():
    screen = screen_of_answer("pooling", 3)
    assert moved(screen, screen.variant("linformer"), 20) == (20, 1)
    assert 0 < moved(screen, screen.variant("power_bert"), 20)[0] < 20
    assert screen.variant("power_bert").params.keep == 0.5
    assert 0 < moved(screen, screen.variant("power_bert"), 20)[1] < 1, "the leak is not complete"
    [task] = leak_tasks(screen.chosen.source, ["power_bert"], head=screen.chosen.head)
    [found] = dispatch.rows("leaks", task)
    assert np.count_nonzero((found.moved > 0).all(0)) > 0.3 * len(found.moved), "kept outputs always change"


def pooling_4():
    screen = screen_of_answer("pooling", 4)
    assert moved(screen, screen.variant("pooled"), 20)[1] == 0
    assert screen.variant("pooled").variant.causal_reason is None


def entropies(place):
    """Return the page with the answer shown, and softmax's entropy by length from its chart."""
    at = press(open_lesson("log_n", place), ".show")
    [(xs, ys)] = [xy for name, xy in lines_of(at).items() if name == "Softmax"]
    return at, dict(zip(xs, ys, strict=True))


def log_n_1():
    _at, by_length = entropies(1)
    steps = np.diff([by_length[n] for n in (64, 128, 256, 512, 1024)])
    assert steps.max() < 1.5 * steps.min(), "each doubling adds about as much again"
    assert steps.min() > 0


def log_n_2():
    at, _by_length = entropies(2)
    slopes = table(at)["slope of entropy against log n"]
    assert 0 < float(slopes["Softmax, log n scaling"]) < float(slopes["Softmax"])


def log_n_3():
    at, by_length = entropies(3)
    slopes = table(at)["slope of entropy against log n"]
    assert f"{float(table(entropies(2)[0])['slope of entropy against log n']['Softmax']):.2f}" == "0.80"
    assert 0.1 < float(slopes["Softmax, log n scaling"]) < float(slopes["Softmax"])
    source, words = screen_of_answer("log_n", 3).chosen.source, [f"softmax_log_n~base_length~{n}" for n in (512, 64)]
    entropy = {
        (task.variant, task.n): np.mean([row.entropy for row in dispatch.rows("entropy_length", task)])
        for task in entropy_length.tasks(source, words, longest=300)
        if task.n in (64, 300)
    }
    growth = [entropy[word, 300] - entropy[word, 64] for word in words]
    assert 0 < growth[1] < 0.7 * growth[0], "a smaller base slows the growth more"
    assert f"{float(slopes['Softmax']):.2f}" == "0.65"
    assert max(by_length) == 300


def lines(place):
    """Return the perplexity factor and the copying loss of each table row once the answer is shown."""
    components = press(open_lesson("stand_in", place), ".show").get("bidi_component")
    [sent] = [each for each in components if "reading" in each.proto.component_name]
    numbers = [row["numbers"] for row in message(sent)[0]["rows"]]
    return [(float(each[2]), float(each[3])) for each in numbers]


def stand_in_1():
    _model, window = lines(1)
    assert window[0] > 1.5, "the text is predicted far worse"


def stand_in_2():
    _model, window, sink = lines(2)
    assert sink[0] - 1 < 0.25 * (window[0] - 1), "one token recovers most of the loss"


def stand_in_3():
    model, sink, topk = lines(3)
    assert topk[0] > sink[0], "top-k predicts the text worse"
    assert (model[1], round(GUESS_LOSS, 1)) == (1.2, 10.8)
    assert sink[1] > GUESS_LOSS, "worse than a uniform guess"
    assert COPY_DISTANCE == 95
    assert topk[1] - model[1] < 0.1 * (sink[1] - model[1]), "and copies nearly as well as the original"


def stand_in_4():
    _model, _topk, linear = lines(4)
    assert linear[0] > 10


def stand_in_5():
    found = error_points(_rows(forecast.tasks(_question(screen_of_answer("stand_in", 5)))))

    def window(point):
        return registry.from_word(point.word).params.window

    for key in ("local", "sink"):
        curve = [point for point in found if point.word.startswith(key)]
        assert len(curve) == 9
        assert [p.perplexity for p in sorted(curve, key=window)] == sorted((p.perplexity for p in curve), reverse=True)
        assert metrics.rank_correlation([p.output for p in curve], [p.perplexity for p in curve]) > 0.9


def shares(screen, word, *, longest=False):
    """Return the share of correct answers of each recorded run at the end of training, or on the longest sequences."""
    rows = recorded_runs.recorded_rows(plan_of(screen.options(LearnOptions), [word], SEEDS))
    most = max(row.row.length for row in rows)
    return [
        row.row.accuracy
        for row in rows
        if (row.is_test and row.row.length == most and row.row.items == row.spec.items if longest else not row.is_test)
        and row.row.step == row.spec.steps
    ]


def convolution_and_gate_1():
    before, after = screen_of_step("convolution_and_gate", 1), screen_of_answer("convolution_and_gate", 1)
    assert min(shares(before, "linear") + shares(before, "softmax")) > 0.95, "both learn the task with the convolution"
    assert sorted(f"{share:.0%}" for share in shares(after, "linear")) == ["30%", "55%", "88%"]
    assert {f"{share:.0%}" for share in shares(after, "softmax")} == {"74%", "93%"}
    assert after.options(LearnOptions).steps == 400


def convolution_and_gate_2():
    screen = screen_of_answer("convolution_and_gate", 2)
    assert screen.options(LearnOptions).layers == 1
    assert min(shares(screen, "linear")) > 0.95


def convolution_and_gate_3():
    screen = screen_of_answer("convolution_and_gate", 3)
    gate = ac.get("gated_deltanet").params
    assert (gate.gate, gate.decay) == ("constant", 0.9)
    assert pytest.approx(0.1, abs=0.003) == 0.9**22
    assert min(shares(screen, "gated_deltanet")) > 0.95, "it learns the task at the length of training"
    assert min(shares(screen, "deltanet", longest=True)) > 0.95
    assert max(shares(screen, "gated_deltanet", longest=True)) < 0.3, "it only guesses in long sequences"


def convolution_and_gate_4():
    assert max(shares(screen_of_step("convolution_and_gate", 4), "gated_deltanet", longest=True)) < 0.3
    assert min(shares(screen_of_answer("convolution_and_gate", 4), "gated_deltanet", longest=True)) > 0.95


def grey_1():
    screen = screen_of_answer("grey", 1)
    source = screen.chosen.source
    assert f"{psnr(source.noisy(), source.clean()):.1f}" == "20.0"
    softmax, linear = (number(screen, "psnr", key) for key in ("softmax", "linear"))
    assert linear < 20 < softmax
    assert f"{softmax:.1f}" == "25.2"
    assert denoised(screen, "linear").distance_from_mean < 0.05 < denoised(screen, "softmax").distance_from_mean


def grey_2():
    assert denoised(screen_of_answer("grey", 2), "softmax").distance_from_mean < 0.05


def grey_3():
    screen = screen_of_answer("grey", 3)
    assert all(number(screen, "psnr", key) > 20 for key in ("softmax", "local", "atrous", "topk"))
    assert screen.variant("atrous").params.stride == screen.variant("topk").params.k == 8
    eighth = math.prod(screen.chosen.source.noisy().shape[:2]) / 8
    assert 2 * screen.variant("local").params.window + 1 < eighth
    assert number(screen, "psnr", "atrous") > max(number(screen, "psnr", key) for key in ("linear", "local", "topk"))


FACTS = {(key, place): globals()[f"{key}_{place}"] for key, place in STEPS if f"{key}_{place}" in globals()}
"""Functions by lesson step; lessons whose steps state no facts have none."""


def test_a_lesson_with_facts_has_them_for_each_step():
    checked = {key for key, _ in FACTS}
    assert len(checked) >= 7
    assert [*FACTS] == [(key, place) for key, place in STEPS if key in checked]


@pytest.mark.parametrize(("key", "place"), FACTS)
def test_the_statements_of_a_step_are_true_of_its_screens(key, place):
    FACTS[key, place]()


@pytest.mark.parametrize(("key", "place"), NUMBERS)
def test_no_step_shows_its_answer_too_early(key, place):
    step = step_of(key, place)
    assert not draft.shows_answer(step)
    found, after = answer.find(step), Screen.from_link(step.at, step.reveal)
    at, name = open_lesson(key, place), label(after.variant(found.key)) if found.key else ""
    texts = (str(each.value) for each in (*at.markdown, *at.caption))
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=\.)\s", text)]
    try:
        text = found.measure.format(found.number(after)) if not found.rank else None
    except ac.LabError:  # The number comes from a measurement that only the page itself runs.
        text = None
    assert text is None or not any(text in sentence and name in sentence for sentence in sentences)
