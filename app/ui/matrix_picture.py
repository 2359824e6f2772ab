"""A variant's attention matrix as a small picture, on the same few random tokens for all variants."""

import base64
import io
from functools import cache

from PIL import Image

import attention_core as ac
from app.figures.picture import picture
from app.jobs import cached
from app.jobs.cached import View
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SAMPLE = SyntheticSource(SyntheticSpec(n=32, heads=1))


@cache
def matrix_picture(key: str, *, dark: bool) -> str:
    """Return a variant's matrix as a data URL of a PNG, one pixel per query–key pair."""
    found = cached.matrix(View(source=SAMPLE, head=0, causal=False, special=True), ac.get(key))
    file = io.BytesIO()
    Image.fromarray(picture(found.weights, dark=dark, side=1)).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
