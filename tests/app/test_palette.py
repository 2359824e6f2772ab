"""A variant has one look on every page, and no other variant has it."""

import attention_core as ac
from app import palette
from app.figures.theme import COLOURS, GREY, SERIES, style
from app.visit import default_variants, first_variants


def test_no_two_variants_look_alike():
    looks = [style(palette.place(variant.key)) for variant in ac.all_variants()]
    assert len(set(looks)) == len(looks)
    assert style(GREY).colour not in {look.colour for look in looks}, "grey is what is no variant"


def test_what_pages_begin_with_has_colours_of_its_own():
    keys = dict.fromkeys(attention.key for attention in (*first_variants(), *default_variants()))
    keys |= dict.fromkeys(palette.COMPARED)
    assert len({style(palette.place(key)).colour for key in keys}) == len(keys) <= COLOURS


def test_what_is_no_variant_comes_after_all_that_are():
    assert palette.place("gate by surprise") == len(ac.all_variants())


def test_a_variant_that_stands_there_twice_has_its_own_look_once():
    words = ["local~window~64", "uniform", "local~window~128", "nystrom", "uniform"]
    found = palette.places(words)
    assert [found[0], found[3]] == [palette.place("local"), palette.place("nystrom")]
    assert len(set(found)) == len({style(place) for place in found}) == 5


def test_colours_come_again_with_another_stroke_and_mark():
    first, again = style(1), style(1 + COLOURS)
    assert first.colour == again.colour == SERIES[1]
    assert first.dash != again.dash
    assert first.mark != again.mark
    assert first.signs != again.signs
    assert [first.sign(hollow=hollow) for hollow in (False, True)] == ["●", "○"]
