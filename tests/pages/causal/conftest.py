"""Fixtures for the Causal page's views on one small input."""

import pytest
from driver import open_page

import attention_core as ac

SMALL = {"input": "synthetic", "n": 24, "d": 8, "heads": 2, "head": 1, "c_size": 8}


@pytest.fixture
def open_view():
    """Return a function that opens a view by name, with changes to the small input's options."""
    return lambda view, **state: open_page("causal", **SMALL | {"c_view": view} | state)


@pytest.fixture(scope="session")
def record():
    """Return the small input."""
    return ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, d=8, heads=2))
