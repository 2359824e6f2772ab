"""Sentences that are filled in the browser show every value exactly as it is."""

import pytest
from conftest import ROOT

from app import javascript

SCRIPT = javascript.script(ROOT / "app" / "templates.js")
TOKENS = ["$&", "$$", "$1", "$`", "{other}", "{word}", "a $' b", "\\$"]


@pytest.fixture(scope="module")
def fill(window):
    page = window.new_page()
    call = f"(given) => {{ {SCRIPT}; return fill(...given); }}"
    yield lambda template, values: page.evaluate(call, [template, values])
    page.close()


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_stands_in_its_sentence_unchanged(fill, token):
    said = fill("“{word}” looks at “{other}” ({word}, {unknown})", {"word": token, "other": "cat"})
    assert said == f"“{token}” looks at “cat” ({token}, {{unknown}})"
