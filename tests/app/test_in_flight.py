"""Tests of outdated values, which the browser sends if the visitor acts before the previous run has ended."""

import pytest
from driver import open_page, send
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.state import presets, url
from app.state.url import LINK

SYNTHETIC = {"input": "synthetic", "n": "12", "heads": "2", "d": "4", "variants": ["softmax", "local"]}
LONG = {"input": "text", "text": ["@long"], "variants": ["softmax", "local"]}
STALE = {
    "selectbox": ("timing", {}, {"t_from": "17 (gone)"}),
    "select_slider": ("entropy", {"h_view": "factor"}, {"h_factor": ["1000000"]}),
    "segmented_control": ("entropy", {}, {"h_unit": ["decibels"]}),
    "the variant of a page": ("inside", {"inside": "nystrom"}, {"inside.variant": "gone"}),
    "pills of several": ("entropy", {}, {"h_scales": ["log n (n₀ = 7)", "gone"]}),
    "number_input": ("matrices", {}, {"heads": 1e6}),
    "slider": ("matrices", {}, {"n": [1e9]}),
    "slider of fractions": ("matrices", {}, {"sharpness": [-3.0]}),
    "a knob in a row": ("matrices", {"variants": "sparse"}, {"knob.sparse.pattern": ["gone"]}),
    "a knob on a ladder": ("matrices", {"variants": "local"}, {"knob.local.window": ["9999999"]}),
    "a knob on a slider": ("matrices", {"variants": "sparse"}, {"knob.sparse.summary": [1e6]}),
    "the model": ("matrices", {"input": "text"}, {"model": "owner/gone"}),
    "the layer": ("matrices", {"input": "text"}, {"layer": "99 (gone)"}),
    "the menu of variants": ("matrices", {}, {"variants.menu.sparse": ["gone"]}),
    "a list of its own key": ("matrices", {"row": "3"}, {"row.pinned": "gone"}),
}
BOUNDED = ("select_slider", "number_input", "slider", "a knob on a ladder")
"""Controls that Streamlit itself resets to the first available value."""


@pytest.mark.parametrize("kind", STALE)
def test_an_outdated_widget_value_changes_neither_state_nor_address(kind, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    page, link, words = STALE[kind]
    at = open_page(page, SYNTHETIC | link)
    before = dict(at.query_params)
    send(at, **words)
    assert not at.error
    assert not [each for each in at.warning if "link" in each.value]
    assert dict(at.query_params) == before or kind.startswith(BOUNDED)
    known = at.session_state[LINK]
    assert url.read_link(known.written_query, known.fields)[1] == ()
    assert all(field.is_allowed(at.session_state[name]) for name, field in known.fields.items())


def longest_of(at):
    return at.selectbox(key="h_longest")


def test_a_choice_stays_if_its_label_has_changed():
    at = open_page("entropy", LONG)
    send(at, h_longest="128")
    called = longest_of(at).options[-1]
    send(at, h_longest=called)
    assert longest_of(at).value == 512
    send(at, text=presets.texts()["long"][:1200])
    assert called not in longest_of(at).options
    send(at, h_longest=called, h_unit=["bits"])
    assert longest_of(at).value == 512
    assert at.query_params["h_longest"] == "512"


def test_a_concurrent_run_may_empty_state_that_this_run_has_set(monkeypatch):
    """Check that this run continues after a concurrent run of the session has deleted state that it had set."""
    use = url.register_fields

    def register_and_delete(fields):
        use(fields)
        state = get_script_run_ctx().session_state._state._new_session_state
        for name in fields:
            state.pop(name, None)

    at = open_page("entropy", LONG)
    called = longest_of(at).options[-1]
    send(at, text=presets.texts()["long"][:1200])
    monkeypatch.setattr(url, "register_fields", register_and_delete)
    send(at, h_longest=called, h_unit=["bits"])
    assert called not in at.query_params.get("h_longest", "")


def test_an_outdated_address_of_the_browser_is_no_new_link():
    at = open_page("entropy", SYNTHETIC | {"h_view": "factor"})
    seen = dict(at.query_params)
    send(at, h_factor=["2"])
    assert at.query_params["h_factor"] == "2.0"
    at.query_params.clear()
    for name, words in seen.items():
        at.query_params[name] = words
    send(at, causal=True)
    assert at.query_params["h_factor"] == "2.0"
    assert at.query_params["causal"] == "1"


def test_an_earlier_address_opened_again_is_a_new_link():
    at = open_page("entropy", SYNTHETIC | {"h_view": "factor"})
    seen = dict(at.query_params)
    send(at, h_factor=["2"])
    send(at, causal=True)  # Here, the browser already shows the address with the factor.
    at.query_params.clear()
    for name, words in seen.items():
        at.query_params[name] = words
    at.run()
    assert "h_factor" not in at.query_params


def test_typed_text_replaces_a_preset_that_still_looks_selected():
    at = open_page("matrices", SYNTHETIC | {"input": "text", "text": "@repeats"})
    pressed = at.button_group(key="preset")
    assert pressed.value == "repeats"
    send(at, text="a few words")
    [pills] = [each for each in at.get("button_group") if each.key.startswith("preset")]
    assert pills.value is None
    assert pills.key != pressed.key  # Late events of the old widget are ignored.
    pills.set_value("repeats").run()
    assert at.text_area(key="text").value == presets.texts()["repeats"]


def test_only_the_latest_addresses_in_flight_are_stored(monkeypatch):
    monkeypatch.setattr(url, "IN_FLIGHT", 2)
    at = open_page("entropy", SYNTHETIC | {"h_view": "factor"})
    first = dict(at.query_params)
    for factor in ("2", "8", "0.5"):
        at.query_params.clear()
        for name, words in first.items():  # The browser still shows the first address.
            at.query_params[name] = words
        send(at, h_factor=[factor])
    assert [each["h_factor"] for each in at.session_state[LINK].pending_queries] == [["2.0"], ["8.0"]]
