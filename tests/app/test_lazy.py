"""Tests of forms behind buttons: they are built only when opened, but links carry the options of closed forms too."""

import pytest
from driver import board, chosen, open_page, set_state

import attention_core as ac
from app.page import discover
from app.ui.lazy import OPEN_FORMS, to_css_name
from app.ui.variant_picker import OPEN_SETTINGS

EIGHT = ("softmax", "linear", "efficient", "local", "atrous", "sparse", "topk", "nystrom")


def knobs(at):
    return [c.key for kind in ("slider", "select_slider", "button_group", "toggle") for c in at.get(kind)]


def forms(at):
    """Return the keys of the settings and variant menus on the page."""
    return {key for key in knobs(at) if key and key.startswith(("knob.", "variants.menu.", "inside.knob."))}


def opened(page, *keys, settings=(), **state):
    return open_page(
        page, input="synthetic", n=8, **{OPEN_FORMS: tuple(map(to_css_name, keys)), OPEN_SETTINGS: settings}, **state
    )


@pytest.mark.parametrize("page", ["matrices", "masks", "inside"])
def test_closed_forms_are_not_built(page):
    assert forms(opened(page, variants=chosen(*EIGHT))) == set()


@pytest.mark.parametrize("page", discover())
def test_no_page_builds_unopened_forms(page):
    at = opened(page, **({"h_longest": 128, "h_seeds": 1} if page == "entropy" else {}))
    closed = [each for kind in ("expander", "popover") for each in at.get(kind)]
    assert closed or page in ("home", "lessons")
    assert {each.type for block in closed for each in block} <= {"expander", "popover", "empty", "markdown"}


def test_only_the_opened_form_is_built():
    at = opened("matrices", settings=("local",), variants=chosen(*EIGHT))
    assert forms(at) == {"knob.local.window", "knob.local.columns"}
    menu = forms(opened("matrices", "variants.menu", variants=chosen(*EIGHT)))
    assert menu == {f"variants.menu.{family}" for family in ac.families()}
    assert "inside.knob.nystrom.landmarks" in forms(opened("inside", "inside.settings"))


def test_an_expander_is_built_when_it_is_opened():
    at = opened("inside")
    assert [each.label for each in at.expander] == ["Formula and code", "Export"]
    assert not at.code
    at = set_state(at, **{"inside.about": True})
    assert any('ac.get("nystrom"' in each.value for each in at.code)
    assert [each.label for each in at.expander] == ["Formula and code", "Source file", "Export"]
    assert not at.get("download_button")
    at = set_state(at, **{"inside.files": True})
    assert [each.proto.label for each in at.get("download_button")] == [
        "All intermediate results (NPZ)",
        "Q, K, V (NPZ)",
    ]


def test_the_display_of_matrices_is_set_in_an_opened_form_and_by_links():
    at = opened("matrices", scale="panel", tone="log")
    assert not {"scale", "tone", "special"} & set(knobs(at))
    assert (at.query_params["scale"], at.query_params["tone"]) == ("panel", "log")
    assert {"scale", "tone", "special"} <= set(knobs(opened("matrices", "matrices.display")))


def test_each_chip_and_panel_describes_its_variant_before_it_is_opened():
    at = opened("error", variants=chosen(*EIGHT))
    texts = [each.help for each in at.button]
    assert all(ac.variant(key).summary in texts for key in EIGHT)
    for page in ("matrices", "masks"):
        panels = board(opened(page, variants=chosen(*EIGHT)), f"{page}.board")[1].items()
        variants = {key: panel for key, (panel, _values) in panels if key != "reach"}
        assert variants
        for key, panel in variants.items():
            assert panel["tooltip"] == ac.variant(key).summary
            assert panel["settings_label"] == f"Settings of {ac.variant(key).title}"


@pytest.mark.parametrize(("page", "panel"), [("matrices", "local"), ("masks", "local"), ("masks", "reach")])
def test_the_settings_of_a_panel_are_on_the_page_while_they_are_open(page, panel):
    at = opened(page, variants=chosen("softmax", "local"))
    form = "knob.local.window" if panel == "local" else "reach.close"
    for expected in (True, False):
        at.session_state[OPEN_SETTINGS] = (panel,) if expected else ()
        at.run()
        keys = {each.key for kind in ("select_slider", "button") for each in at.get(kind)}
        assert (form in keys) == expected


def test_a_link_carries_the_knobs_of_closed_forms():
    local = ac.get("local", window=3)
    at = opened("matrices", variants=(ac.get("softmax"), local))
    assert at.query_params["variants"] == ["softmax", local.word]
    assert forms(at) == set()


def test_a_knob_can_be_changed_in_an_opened_form():
    at = opened("matrices", settings=("local",), variants=chosen("softmax", "local"))
    [slider] = [each for each in at.select_slider if each.key == "knob.local.window"]
    slider.set_value(4).run()
    assert at.query_params["variants"] == ["softmax", ac.get("local", window=4).word]
    assert forms(at) == {"knob.local.window", "knob.local.columns"}


def test_comparing_eight_variants_sends_few_elements():
    at = opened("matrices", variants=chosen(*EIGHT))
    sent = [each.type for part in (at.main, at.sidebar) for each in part]
    assert len(sent) <= 74, sent  # With all forms, there would be 96 elements; sending one takes 1/3 ms.


def test_a_chip_opens_and_closes_its_settings_in_place_of_others():
    at = opened("error", variants=chosen("softmax", "local", "nystrom"))

    def press(key):
        at.button(key=f"variants.chip.{key}").click().run()
        return {key.split(".")[1] for key in forms(at) if key.startswith("knob.")}

    assert [press(key) for key in ("local", "nystrom", "nystrom")] == [{"local"}, {"nystrom"}, set()]
