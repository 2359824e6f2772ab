"""The Model page is looked at with numbers made up, but where a test undoes that."""

import pytest
from no_model import without_a_model


@pytest.fixture(autouse=True)
def made_up_numbers(monkeypatch):
    without_a_model(monkeypatch)
