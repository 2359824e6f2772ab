"""Browser tests of sentences whose values are filled in by the browser: tokens in them appear unchanged."""

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
    text = fill("“{word}” looks at “{other}” ({word}, {unknown})", {"word": token, "other": "cat"})
    assert text == f"“{token}” looks at “cat” ({token}, {{unknown}})"


def test_a_right_to_left_token_is_isolated_once(fill):
    token, isolated = "שלום", "\u2068שלום\u2069"
    assert fill("“{word}” 7%", {"word": token}) == f"“{isolated}” 7%"
    assert fill("at {list}.", {"list": f"“{isolated}” 7%"}) == f"at “{isolated}” 7%."
    assert fill("“{word}” 7%", {"word": "cat"}) == "“cat” 7%"


def test_a_chinese_template_has_spaces_only_around_latin_values(fill):
    template = "{row} 只给它 {weight}，{kind} 是“{word}”"
    values = {"row": "局部", "weight": "7%", "kind": "空洞（步长 8）", "word": "它 的"}
    assert fill(template, values) == "局部只给它 7%，空洞（步长 8）是“它 的”"
    assert fill(template, values | {"row": "Nyström", "kind": "BigBird"}) == "Nyström 只给它 7%，BigBird 是“它 的”"
    assert fill("{row} {weight}", values | {"weight": "空洞"}) == "局部 空洞"
