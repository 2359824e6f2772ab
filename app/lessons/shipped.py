"""The lessons that the app includes, each a file in the folder ``shipped``, and the pictures in the list of lessons."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

import attention_core as ac
from app.figures.picture import MARK_COLOUR, curve_url, data_url, pixels_url, unknown_url, words_url
from app.figures.theme import SERIES
from app.jobs import cached
from app.lessons import lesson
from app.lessons.lesson import Lesson
from app.state import presets
from app.ui import palette
from app.ui.matrix_picture import SAMPLE, SAMPLE_VIEW, matrix_picture
from app.words.i18n import N_
from attention_core.analysis.matrix.inside import logits
from attention_core.experiments import learning, swap
from attention_core.inputs.image_source import ImageSource
from attention_core.inputs.models import layer_count
from attention_core.learning import recorded_runs

FOLDER = Path(__file__).parent / "shipped"
MATRICES = {"window_and_sink": ("softmax", "local")}
"""For each lesson key, the two variants whose matrices are the lesson's pictures, on one colour scale."""
UNKNOWN = {"flat": ac.variant("linear").title, "grey": ac.variant("linear").title, "nystrom_performer": N_("closer: ?")}
"""For each lesson key, the name of the question mark next to the lesson's first picture."""
POOL = 4
"""Number of tokens that are averaged into one (a pool), in the picture of the lesson ``pooling``."""
HARDER_WORDS = 3
"""Number of marked words in the picture of the lesson ``stand_in``."""
MAX_LENGTH = 64
"""Largest number of characters of the sentence in the picture of the lesson ``stand_in``."""
LENGTHS = (4, 8, 16, 32)
"""Numbers of tokens at which the curve in the picture of the lesson ``log_n`` has points."""
ORDER = (
    "softmax",
    "flat",
    "grey",
    "window_and_sink",
    "local_then_atrous",
    "nystrom_performer",
    "pooling",
    "log_n",
    "stand_in",
    "convolution_and_gate",
)


@cache
def all_lessons() -> dict[str, Lesson]:
    """Return the included lessons by key, in the intended order."""
    return {key: lesson.read((FOLDER / f"{key}.toml").read_bytes(), key) for key in ORDER}


@dataclass(frozen=True)
class Picture:
    """A picture in the list of lessons.

    Attributes:
        address: the picture as a data URL.
        names: the colour of each curve, or of the marked words, by its name. A picture without such colours has one
            name, with an empty colour.
    """

    address: str
    names: dict[str, str]


@cache
def lesson_pictures(key: str, *, dark: bool) -> tuple[Picture, ...]:
    """Return an included lesson's pictures: one for each of the two things that it compares, or one with both.

    A question mark replaces a result that the lesson asks for.
    """
    softmax, scaled, linear = (SERIES[palette.index(each)] for each in ("softmax", "softmax_log_n", "linear"))
    if key == "softmax":
        weights = Picture(matrix_picture("softmax", dark=dark), {N_("weights"): ""})
        return Picture(data_url(logits(SAMPLE.load(), head=0), dark=dark), {N_("scores"): ""}), weights
    if key == "local_then_atrous":
        layer = np.nan_to_num(cached.matrix(SAMPLE_VIEW, ac.get("atrous")).weights) > 0
        one = data_url(np.where(layer, 1.0, np.nan), dark=dark)
        return Picture(one, {N_("one layer"): ""}), Picture(unknown_url(dark=dark), {N_("two layers"): ""})
    if key == "pooling":
        causal, pooled = matrix_picture("softmax", dark=dark, causal=True), _pooling_url(dark=dark)
        return Picture(causal, {N_("causal"): ""}), Picture(pooled, {N_("leaking"): ""})
    if key == "log_n":
        names = {ac.variant("softmax").title: softmax, N_("factor: ?"): scaled}
        return (Picture(curve_url(_entropies(), softmax, scaled, dark=dark), names),)
    if key in UNKNOWN:
        known = Picture(matrix_picture("softmax", dark=dark), {ac.variant("softmax").title: ""})
        if key == "grey":
            known = Picture(pixels_url(ImageSource().noisy().numpy()), {N_("noisy"): ""})
        return known, Picture(unknown_url(dark=dark), {UNKNOWN[key]: ""})
    if key == "stand_in" and (words := _harder_words()):
        return (Picture(words_url(*words, dark=dark), {N_("harder to predict"): MARK_COLOUR}),)
    if key == "convolution_and_gate" and (accuracies := _accuracies()):
        names = {ac.variant("softmax").title: softmax, N_("Linear: ?"): linear}
        return (Picture(curve_url(accuracies, softmax, linear, dark=dark), names),)
    variants = MATRICES.get(key, ("softmax",))
    top = max(float(np.nanmax(cached.matrix(SAMPLE_VIEW, ac.get(each)).weights)) for each in variants)
    return tuple(Picture(matrix_picture(each, dark=dark, top=top), {ac.variant(each).title: ""}) for each in variants)


def _pooling_url(*, dark: bool) -> str:
    """Return the matrix of ``funnel``, which averages queries in pools, as a PNG data URL.

    Keys of later pools are masked, but each query can still attend to the later tokens of its own pool.
    """
    weights = cached.matrix(SAMPLE_VIEW, ac.get("funnel", stride=POOL)).weights
    pools = np.arange(len(weights)) // POOL
    return data_url(np.where(pools[:, None] >= pools, weights, np.nan), dark=dark)


def _entropies() -> list[tuple[float, float]]:
    """Return points ``(n, mean entropy in nats)``: the entropy of softmax's rows on n tokens of random input."""
    qkv, softmax = SAMPLE.load(), ac.get("softmax")
    rows = ((n, softmax.weights(qkv.q[:, :n], qkv.k[:, :n])) for n in LENGTHS)
    return [(n, float(ac.metrics.entropy(weights).mean())) for n, weights in rows]


def _harder_words() -> tuple[list[str], list[int]] | None:
    """Return the words of a sentence, and the indices of those that a model with a window predicts much worse.

    Of the sentences that fit into the picture, it is the one in which the loss of ``HARDER_WORDS`` words grows most.
    None if this repository has no recorded run of the model.
    """
    text, layers = presets.texts()["long"], tuple(range(layer_count(swap.MODEL)))
    tasks = swap.tasks(text, ["local~window~64"], layers, seeds=swap.SEEDS, live=False)
    rows = (swap.recorded_row(task) for task in tasks if isinstance(task, swap.ReadingTask))
    measured = [row for row in rows if isinstance(row, swap.ReadingRow) and row.losses]
    if len(measured) < 2:
        return None
    before, after = measured
    ends = [each.end() for each in re.finditer(r"\S+", text)]
    increases, end = [0.0] * len(ends), 0
    for token, *losses in zip(before.labels[1:], before.losses, after.losses, strict=True):
        end = text.index(token, end) + len(token)
        word = bisect_left(ends, end)
        increases[word] = max(increases[word], losses[1] - losses[0])
    words, sentences = text.split(), [0]
    sentences += [i + 1 for i, word in enumerate(words) if word.endswith(".")]
    ranges = [
        range(*pair) for pair in pairwise(sentences) if sum(len(words[i]) + 1 for i in range(*pair)) <= MAX_LENGTH
    ]
    hardest = [sorted(span, key=lambda i: -increases[i])[:HARDER_WORDS] for span in ranges]
    best = max(range(len(ranges)), key=lambda i: sum(increases[j] for j in hardest[i]))
    return [words[i] for i in ranges[best]], [i - ranges[best].start for i in hardest[best]]


def _accuracies() -> list[tuple[float, float]]:
    """Return points ``(training step, accuracy)`` of softmax, from a recorded run, if there is one."""
    rows = recorded_runs.recorded_rows(learning.plan(["softmax"], task="recall"))
    return [(row.row.step, row.row.accuracy) for row in rows or () if not row.is_test]
