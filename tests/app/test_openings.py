"""Tests of the values with which a page opens: its own defaults, choices made on other pages, or those of a link."""

from driver import chosen, go, set_state, visit

from app.state import presets
from app.state.session import default_variants


def opened(at):
    """Return the name of the shown text, the keys of the variants, and the x-axis option of the errors, if any."""
    state, texts = at.session_state, {text: name for name, text in presets.texts().items()}
    against = next((state[name] for name in ("against",) if name in state), None)
    return texts.get(state["text"]), [attention.key for attention in state["variants"]], against


FIRST = ("story", ["softmax", "local", "linear", "nystrom"], None)
MASKS = ("story", ["softmax", "local", "atrous", "bigbird"], None)


def test_each_page_opens_with_its_own_defaults_until_a_choice_is_made():
    at = visit("entropy")
    assert opened(at) == ("long", ["softmax"], None)
    assert opened(go(at, "masks")) == MASKS
    assert opened(go(at, "matrices")) == FIRST
    assert opened(go(at, "entropy")) == ("long", ["softmax"], None)
    assert opened(go(at, "error")) == ("long", FIRST[1], "cost")


def test_a_choice_overrides_the_defaults_of_the_next_page():
    at = visit("masks")
    set_state(at, variants=chosen("softmax", "topk"))
    assert opened(go(at, "entropy"))[:2] == ("long", ["softmax", "topk"])
    set_state(at, text=presets.texts()["repeats"])
    assert opened(go(at, "masks"))[0] == "repeats"
    assert opened(go(at, "entropy"))[0] == "repeats"


def test_an_address_with_any_value_disables_the_pages_own_defaults():
    at = visit("entropy", {"h_unit": ["bits"]})
    assert opened(at)[:2] == ("english", [attention.key for attention in default_variants()])
    assert opened(visit("error", {"log_error": ["1"]}))[2] == "budget"
    assert opened(go(visit("masks", {"text": ["@story"]}), "entropy"))[0] == "story", "it was asked for"
