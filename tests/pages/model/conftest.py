"""Fixtures that make the tests of the Model page use made-up numbers instead of a language model."""

import pytest
from no_model import without_a_model


@pytest.fixture(autouse=True)
def made_up_numbers(monkeypatch):
    without_a_model(monkeypatch)
