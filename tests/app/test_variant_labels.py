"""Tests of the names on screen of attention variants, their settings, their families, and tokens."""

import attention_core as ac
from app.words.labels import family_title, label, reference_name, setting_name, token_options


def test_only_softmax_is_labelled_with_its_changed_settings():
    assert label(ac.get("softmax")) == "Softmax"
    assert label(ac.get("softmax", temperature=2.0)) == "Softmax · temperature 2.0"
    assert label(ac.get("performer", features=8, kind="trig")) == "Performer · features 8"


def test_settings_and_references_are_written_as_words():
    assert setting_name("base_length") == "base length"
    assert reference_name(ac.get("local")) == "softmax"
    assert reference_name(ac.get("reformer")) == "shared-QK softmax"


def test_every_family_has_its_own_title():
    assert family_title("kernel") == "Linear (kernel)"
    assert len({family_title(family) for family in ac.families()}) == len(ac.families())


def test_a_token_index_beyond_the_text_has_a_name():
    named = token_options(("the", "cat"))["format_func"]
    assert [named(i) for i in (0, 1, 2)] == ["0  the", "1  cat", "2"]
