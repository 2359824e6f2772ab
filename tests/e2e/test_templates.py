"""A browser test of sentence templates that are filled in the browser: every value appears unchanged."""

import pytest
from conftest import ROOT

from app.page_script import bundling

SCRIPT = bundling.script(ROOT / "app" / "page_script" / "templates.js")
TOKENS = ["$&", "$$", "$1", "$`", "{other}", "{word}", "a $' b", "\\$"]


@pytest.fixture(scope="module")
def fill(window):
    page = window.new_page()
    call = f"(given) => {{ {SCRIPT}; return fill(...given); }}"
    yield lambda template, values: page.evaluate(call, [template, values])
    page.close()


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_unchanged_in_its_sentence(fill, token):
    said = fill("“{word}” looks at “{other}” ({word}, {unknown})", {"word": token, "other": "cat"})
    assert said == f"“{token}” looks at “cat” ({token}, {{unknown}})"


def test_a_right_to_left_token_is_isolated_once(fill):
    token, isolated = "שלום", "\u2068שלום\u2069"
    assert fill("“{word}” 7%", {"word": token}) == f"“{isolated}” 7%"
    assert fill("at {list}.", {"list": f"“{isolated}” 7%"}) == f"at “{isolated}” 7%."
    assert fill("“{word}” 7%", {"word": "cat"}) == "“cat” 7%"
