"""The lessons included in the app, each in a file of the folder ``shipped``, and the picture next to its question."""

from functools import cache
from pathlib import Path

import attention_core as ac
from app.figures.picture import curves_url, pixels_url, words_url
from app.lessons import lesson
from app.lessons.lesson import Lesson
from app.state import presets
from app.ui.matrix_picture import SAMPLE, matrix_picture
from attention_core.experiments import learning, swap
from attention_core.inputs.models import layer_count
from attention_core.inputs.source import ImageSource
from attention_core.learning import recorded_runs

FOLDER = Path(__file__).parent / "shipped"
MATRICES = {
    "flat": "softmax",
    "window_and_sink": "local",
    "local_then_atrous": "atrous",
    "nystrom_performer": "performer",
}
"""The variant whose matrix is the picture of a lesson."""
LENGTHS = (4, 8, 16, 32)
"""Numbers of tokens at which the picture of the lesson on longer texts has points."""
ORDER = (
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
def shipped() -> dict[str, Lesson]:
    """Return the included lessons by key, in the intended order."""
    return {key: lesson.read((FOLDER / f"{key}.toml").read_bytes(), key) for key in ORDER}


@cache
def lesson_picture(key: str, *, dark: bool) -> str:
    """Return a picture of an included lesson's question as a data URL; softmax's matrix for a lesson without its own.

    The lesson on longer texts asks whether the entropy can stay constant, so its picture has a level line too.
    """
    if key == "grey":
        return pixels_url(ImageSource().noisy().numpy())
    if key == "log_n":
        rising = _entropies()
        return curves_url([rising, [(n, rising[0][1]) for n, _entropy in rising]], dark=dark)
    if key == "pooling":
        return matrix_picture("softmax", dark=dark, causal=True)
    if key == "stand_in" and (found := _losses()):
        return words_url(*found, dark=dark)
    if key == "convolution_and_gate" and (lines := _accuracies()):
        return curves_url(lines, dark=dark)
    return matrix_picture(MATRICES.get(key, "softmax"), dark=dark)


def _entropies() -> list[tuple[float, float]]:
    """Return the mean entropy of softmax's rows on the first tokens of random input, by their number."""
    given, softmax = SAMPLE.load(), ac.get("softmax")
    rows = ((n, softmax.weights(given.q[:, :n], given.k[:, :n])) for n in LENGTHS)
    return [(n, float(ac.metrics.entropy(weights).mean())) for n, weights in rows]


def _losses() -> tuple[list[int], list[float]] | None:
    """Return the words' lengths and the recorded increases of their losses with a window; None without a record."""
    layers = tuple(range(layer_count(swap.MODEL)))
    tasks = swap.tasks(presets.texts()["long"], ["local~window~64"], layers, seeds=swap.SEEDS, live=False)
    rows = (swap.known(task) for task in tasks if isinstance(task, swap.ReadingTask))
    found = [row for row in rows if isinstance(row, swap.ReadingRow) and row.losses]
    if len(found) < 2:
        return None
    before, after = found
    worse = [y - x for x, y in zip(before.losses, after.losses, strict=True)]
    return [len(label) for label in before.labels[1:]], worse


def _accuracies() -> list[list[tuple[float, float]]]:
    """Return the recorded accuracy of softmax and of linear attention by training steps; empty without a record."""
    runs = (recorded_runs.known(learning.plan([word], task="recall")) for word in ("softmax", "linear"))
    return [[(row.row.step, row.row.accuracy) for row in rows if not row.is_test] for rows in runs if rows]
