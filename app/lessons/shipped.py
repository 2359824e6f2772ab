"""The lessons included in the app, each in a file of the folder ``shipped``."""

from functools import cache
from pathlib import Path

from app.lessons import lesson
from app.lessons.lesson import Lesson

FOLDER = Path(__file__).parent / "shipped"
PICTURE = {
    "flat": "softmax",
    "grey": "cosine",
    "window_and_sink": "local",
    "local_then_atrous": "atrous",
    "nystrom_performer": "landmark",
    "pooling": "funnel",
    "log_n": "softmax_log_n",
    "stand_in": "topk",
    "convolution_and_gate": "gated_deltanet",
}
"""The variant whose matrix is shown next to the question of a lesson. No picture shows an answer."""
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
