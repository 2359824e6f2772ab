"""The Causal page's views on one small input."""

import pytest
from driver import open_page

import attention_core as ac

SMALL = {"input": "synthetic", "n": 24, "d": 8, "heads": 2, "head": 1, "c_size": 8}


@pytest.fixture
def open_view():
    """How a view is opened, by its word and what else differs from the small input."""
    return lambda view, **state: open_page("causal", **SMALL | {"c_view": view} | state)


@pytest.fixture(scope="session")
def record():
    """The small input."""
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, d=8, heads=2))
