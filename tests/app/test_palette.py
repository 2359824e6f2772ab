"""Tests that each attention variant has a unique combination of colour, dash and marker, the same on every page."""

from dataclasses import replace

import pytest

import attention_core as ac
from app.figures.theme import COLOURS, GREY, SERIES, STYLE_COUNT, separate_colours, style
from app.state.session import default_variants, first_variants
from app.ui import palette

RECORDED = """
    softmax local linear nystrom efficient atrous sparse topk softmax_log_n relu2 retention additive alibi differential
    entmax fox nonlocal selective sigmoid sink_logit softpick synthesizer sink bigbird blocks longformer nsa power_bert
    reformer vertical_slash centred_taylor cosformer cosine emanet hedgehog performer taylor2 deltanet gated_deltanet
    gla kda mesa path scalar_decay softmax_gdn funnel landmark linformer pooled pyramid gqa heavy_hitters mla
    quantised_keys lolcats flash_mixed
"""
"""The first 56 variants in the order of their colours, as recorded when there were 56."""


@pytest.fixture
def register(monkeypatch):
    """Return a function that adds toy variants to the registry, each at a position of its own."""

    def add(**toys: int) -> None:
        known = list(ac.all_variants())
        for key, position in toys.items():
            known.insert(position, replace(ac.variant("softmax"), module=f"variants.dense.{key}"))
        monkeypatch.setattr(ac, "all_variants", lambda: tuple(known))
        palette._index_by_key.cache_clear()

    yield add
    monkeypatch.undo()
    palette._index_by_key.cache_clear()


def test_the_first_56_variants_keep_their_place():
    assert [palette.index(key) for key in RECORDED.split()] == list(range(56))


@pytest.mark.parametrize("position", [0, 1, 12, 30, 56])
def test_a_new_variant_changes_no_other_style(register, position):
    known = ac.all_variants()
    words = ["local~window~64", "uniform", "local~window~128", "flash_mixed", "flash_mixed~heads~2"]
    before, repeats = [style(palette.index(v.key)) for v in known], palette.indices(words)
    register(toy=position)
    assert [style(palette.index(v.key)) for v in known] == before
    assert palette.indices(words) == repeats
    assert palette.index("toy") == len(known)


def test_variants_that_are_not_listed_take_the_next_places_in_the_order_of_their_keys(register):
    known = len(ac.all_variants())
    register(toy_b=5, toy_a=40, toy_c=0)
    assert [palette.index(f"toy_{letter}") for letter in "abc"] == [known, known + 1, known + 2]


def test_every_variant_has_its_own_place():
    found = [palette.index(variant.key) for variant in ac.all_variants()]
    assert sorted(found) == list(range(len(found)))


def test_no_two_variants_have_the_same_style():
    looks = [style(palette.index(variant.key)) for variant in ac.all_variants()]
    assert len(set(looks)) == len(looks)
    assert style(GREY).colour not in {look.colour for look in looks}, "grey is what is no variant"


def test_the_default_variants_have_different_colours():
    keys = dict.fromkeys(attention.key for attention in (*first_variants(), *default_variants()))
    keys |= dict.fromkeys(palette.COMPARED)
    assert len({style(palette.index(key)).colour for key in keys}) == len(keys) <= COLOURS


def test_a_key_that_is_not_a_variant_takes_the_last_place():
    assert palette.index("gate by surprise") == STYLE_COUNT - 1 > max(palette.index(v.key) for v in ac.all_variants())


def test_a_second_word_of_a_variant_has_another_style():
    words = ["local~window~64", "uniform", "local~window~128", "nystrom", "uniform"]
    found = palette.indices(words)
    assert [found[0], found[3]] == [palette.index("local"), palette.index("nystrom")]
    assert len(set(found)) == len({style(place) for place in found}) == 5


def test_two_variants_in_a_figure_have_different_colours():
    local, bigbird, linear = (palette.index(key) for key in ("local", "bigbird", "linear"))
    found = separate_colours([bigbird, GREY, local, linear, bigbird])
    assert style(local).colour == style(bigbird).colour
    assert {index: found[index] for index in (local, linear, GREY)} == {local: local, linear: linear, GREY: GREY}
    moved, own = style(found[bigbird]), style(bigbird)
    assert moved.colour == SERIES[COLOURS - 1]
    assert (moved.dash, moved.marker) == (own.dash, own.marker)
    assert palette.indices(["bigbird", "local"]) == [found[bigbird], local]


def test_more_variants_than_colours_keep_their_styles():
    found = separate_colours(range(COLOURS + 2))
    assert found == {index: index for index in range(COLOURS + 2)}


def test_colours_repeat_with_another_dash_and_marker():
    first, again = style(1), style(1 + COLOURS)
    assert first.colour == again.colour == SERIES[1]
    assert first.dash != again.dash
    assert first.marker != again.marker
    assert first.signs != again.signs
    assert [first.sign(hollow=hollow) for hollow in (False, True)] == ["●", "○"]
