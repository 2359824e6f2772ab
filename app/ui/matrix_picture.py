"""A small picture of an attention variant's matrix, computed on the same 32 random tokens for every variant."""

from dataclasses import replace
from functools import cache

import attention_core as ac
from app.figures.picture import data_url
from app.jobs import cached
from app.jobs.cached import MatrixView
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SAMPLE = SyntheticSource(SyntheticSpec(n=32, heads=1))
SAMPLE_VIEW = MatrixView(source=SAMPLE, head=0, causal=False, special=True)


@cache
def matrix_picture(key: str, *, dark: bool, causal: bool = False, top: float | None = None) -> str:
    """Return a variant's matrix as a data URL of a PNG; see ``app.figures.picture.data_url``."""
    comparison = cached.matrix(replace(SAMPLE_VIEW, causal=causal), ac.get(key))
    return data_url(comparison.weights, dark=dark, top=top)
