"""Tests of links: a link holds all values on a page, and every value that is read from a link is checked."""

import random

import driver
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import attention_core as ac
from app.state import link_fields, presets, refusals, session, url
from app.state.controls import Options
from app.state.session import SharedOptions
from attention_core.limits import current

KNOWN = Options.shared() | {
    "tone": link_fields.one_of("sqrt", ["sqrt", "linear", "log"]),
    "row": link_fields.integer(None, 0, current().matrix_tokens - 1),
}


def defaults():
    return {name: field.default for name, field in KNOWN.items()}


def attentions():
    """Return a strategy of variants with any valid settings."""

    def value(setting):
        if setting.kind == "choice":
            return st.sampled_from(setting.choices)
        if setting.kind == "bool":
            return st.booleans()
        if setting.kind == "int":
            return st.integers(int(setting.low), int(setting.high))
        return st.floats(setting.low, setting.high)

    def build(variant):
        knobs = {s.name: value(s) for s in variant.params.settings()}
        return st.fixed_dictionaries(knobs).map(lambda given: ac.get(variant.key, **given))

    return st.sampled_from(ac.all_variants()).flatmap(build)


def with_reference(chosen):
    """Return the chosen variants, with softmax added if it is missing."""
    return tuple(chosen) if "softmax" in [a.key for a in chosen] else (ac.get("softmax"), *chosen)


STATES = st.fixed_dictionaries(
    {
        "input": st.sampled_from(["text", "synthetic", "upload"]),
        "text": st.text(st.characters(codec="utf-8"), max_size=300) | st.sampled_from(list(presets.texts().values())),
        "layer": st.integers(0, 40),
        "head": st.integers(-1, 40),
        "n": st.integers(1, current().matrix_tokens),
        "sharpness": st.floats(0, 16),
        "rope": st.booleans(),
        "positions": st.sampled_from(["own", "none", "rope", "alibi"]),
        "causal": st.booleans(),
        "row": st.none() | st.integers(0, current().matrix_tokens - 1),
        "tone": st.sampled_from(["linear", "sqrt", "log"]),
        "variants": st.lists(attentions(), max_size=6, unique_by=lambda a: a.key).map(with_reference),
    }
)


@given(STATES)
@settings(deadline=None, max_examples=60)
def test_a_link_restores_the_state_that_it_was_made_from(changed):
    state = defaults() | changed
    values, rejected = url.read_link(url.to_query(state, KNOWN), KNOWN)
    assert values == state
    assert rejected == ()


def test_a_first_visit_may_open_with_values_other_than_the_defaults():
    # In a link, an omitted option has its default. An address without any option opens the screen of a first visit.
    assert KNOWN["text"].opening_value() == presets.texts()["story"] != KNOWN["text"].default
    assert url.to_query(defaults(), KNOWN) == {}
    assert url.to_query(defaults() | {"n": 12}, KNOWN) == {"n": ["12"]}
    assert url.to_query(defaults() | {"special": False}, KNOWN) == {"special": ["0"]}


WORDS = ["softmax", "local", "linear", "nystrom~landmarks~16"]
"""The variants of a first visit, as written in an address."""


def test_only_an_empty_address_opens_the_first_variants_by_default():
    first = driver.visit("matrices")
    assert first.session_state["special"] is True
    assert first.session_state["text"] == presets.texts()["story"]
    assert first.session_state["variants"] == session.first_variants()
    written = dict(first.run().query_params)
    assert written == {"text": "@story", "variants": WORDS, "row": "opening"}
    again = driver.visit("matrices", {"text": ["@story"], "variants": WORDS})
    for name in ("text", "variants", "special"):
        assert again.session_state[name] == first.session_state[name], "the address opens what the first visit shows"
    moved = first.toggle(key="causal").set_value(True).run().query_params
    assert (moved["text"], moved["causal"]) == ("@story", "1")
    assert moved["variants"] == WORDS
    assert dict(first.toggle(key="causal").set_value(False).run().query_params) == written
    alike = driver.visit("matrices", {"text": ["@english"], "special": ["0"]})
    written = alike.toggle(key="special").set_value(True).run().query_params
    assert (written.get("special"), written["text"], len(written["variants"])) == (None, "@english", 8)
    assert driver.visit("matrices", {"variants": ["softmax"]}).session_state["text"] != presets.texts()["story"]


def test_a_preset_is_in_a_link_by_name_and_not_as_text():
    link = url.to_query(defaults() | {"text": presets.texts()["chinese"]}, KNOWN)
    assert link == {"text": ["@chinese"]}


@pytest.mark.parametrize("letters", ["abcdefghijklmnopqrstuvwxyz", "".join(map(chr, range(0x4E00, 0x9E00)))])
def test_an_address_has_the_beginning_of_a_text_that_is_too_long(letters):
    noise = "".join(random.Random(1).choices(letters, k=30_000))
    [word] = session.write_text(noise)
    assert 0.85 * session.LINK_TEXT < len(word) <= session.LINK_TEXT
    kept = session.read_text([word])
    assert noise.startswith(kept)
    assert len(kept) > 3000
    assert session.write_text(kept) == [word]


def test_an_address_has_all_characters_that_pages_read():
    text = "word " * 20_000
    [word] = session.write_text(text)
    assert session.read_text([word]) == text[:20_000]
    assert session.read_text(session.write_text(text[:19_999])) == text[:19_999]


def test_the_link_to_a_long_text_shows_the_same_and_says_how_much_it_contains():
    long = " ".join(random.Random(2).choices(["one", "cat", "sat", "by", "the", "old", "door"], k=15_000))
    at = driver.open_page("matrices", text=long, variants=(ac.get("softmax"),))
    [note] = [each.value for each in at.info if "link" in each.value]
    assert note == "The link and a reload open only the first 20,000 characters of this long text."
    again = driver.visit("matrices", {"text": session.write_text(long), "variants": ["softmax"], "special": ["1"]})
    matrix, other = (driver.board(page, "matrices.board")[1]["softmax"][1] for page in (at, again))
    assert np.array_equal(matrix, other)
    assert not any("link" in each.value for each in again.info)
    followed = driver.go(at, "masks", {"text": session.write_text(long), "causal": ["1"]})
    assert followed.session_state["causal"]
    assert followed.session_state["text"] == long, "a link with the beginning of the text keeps the whole text"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("input", "telepathy"),
        ("text", "not base64!"),
        ("text", "@nowhere"),
        ("text", "\u00e9"),
        ("layer", "-1"),
        ("layer", "2.5"),
        ("head", "many"),
        ("n", "1000000000"),
        ("sharpness", "nan"),
        ("sharpness", "inf"),
        ("causal", "perhaps"),
        ("variants", "softmax~temperature"),
        ("variants", "softmax~temperature~1e9"),
        ("variants", "softmax~temperature~__import__"),
        ("variants", "nystrm"),
        ("row", "9" * 5000),
    ],
)
def test_a_bad_value_falls_back_to_its_default_and_is_named(name, word):
    values, rejected = url.read_link({name: [word]}, KNOWN)
    assert values == defaults()
    assert rejected == (name,)


def test_a_text_that_unpacks_beyond_the_bound_is_refused():
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(b"a" * 50_000_000, 9)).decode()
    assert url.read_link({"text": [bomb]}, KNOWN)[1] == ("text",)


@given(st.dictionaries(st.sampled_from(list(KNOWN)), st.lists(st.text(max_size=40), min_size=1, max_size=3)))
@settings(deadline=None)
def test_no_link_raises_an_error(given_link):
    values, rejected = url.read_link(given_link, KNOWN)
    assert set(values) == set(KNOWN)
    assert set(rejected) <= set(given_link)


REFUSAL = {name: link_fields.one_of(default, range(50)) for name, default in (("a", 3), ("b", None))}


def refused(**words):
    return refusals.notice_text({"a": 4, "b": None}, REFUSAL, words)


def test_rejected_values_are_named_with_their_replacements():
    assert refused(a=["x", "y"]) == (
        "The link contains values that this page does not accept. For `a`, the page uses “4” instead of “x, y”."
    )
    assert refused(b=["7"], c=["8"]) == (
        "The link contains values that this page does not accept. For `b`, the page uses no value instead of “7”. "
        "This page has no parameter with the name “c”."
    )
    empty = refusals.notice_text({"a": ""}, {"a": link_fields.one_of("", ("", "sparse"))}, {"a": ["7"]})
    assert empty.endswith("For `a`, the page uses no value instead of “7” (allowed: sparse).")
    assert refused(c=["1"], d=["2"]) == (
        "The link contains values that this page does not accept. "
        "This page has no parameters with the names “c” and “d”."
    )


@pytest.mark.parametrize(
    ("kind", "word", "expected"),
    [
        (link_fields.integer(3, 1, 2048), "2049", "the page uses “3” instead of “2049” (allowed: 1 to 2,048)."),
        (link_fields.integer(3, 1, 2048), "2048", "the page uses “3” instead of “2048”."),  # The input is shorter.
        (link_fields.number(3.0, 0.5, 16.0), "16.5", "the page uses “3” instead of “16.5” (allowed: 0.5 to 16)."),
        (link_fields.number(3.0, 0.5, 16.0), "16", "the page uses “3” instead of “16”."),
        (
            link_fields.one_of(3, range(1, link_fields.MAX_LISTED)),
            "0",
            "instead of “0” (allowed: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 11).",
        ),
        (link_fields.one_of(3, range(link_fields.MAX_LISTED + 1)), "-1", "the page uses “3” instead of “-1”."),
    ],
)
def test_a_value_out_of_bounds_gives_a_sentence_with_the_bounds(kind, word, expected):
    assert refusals.notice_text({"a": 3}, {"a": kind}, {"a": [word]}).endswith(expected)


def test_the_limit_of_variants_is_named_only_if_it_is_exceeded():
    kind = SharedOptions.variants.field()
    for words, text in (
        (["nystrom~landmarks~0"], "landmarks\\~0”."),
        (["softmax", "local", "local"], "instead of “softmax, local, local” (allowed: up to 16 variants, each once)."),
    ):
        assert refusals.notice_text({"a": kind.default}, {"a": kind}, {"a": words}).endswith(text)


def test_a_links_value_is_cut_and_never_markup():
    assert "instead of “" + "x" * refusals.MAX_LENGTH + "”" in refused(a=["x" * refusals.MAX_LENGTH])
    assert "instead of “" + "x" * refusals.MAX_LENGTH + "…”" in refused(a=["x" * (refusals.MAX_LENGTH + 1)])
    assert r"instead of “\*a\*”" in refused(a=["*a*"])


@pytest.mark.parametrize(("count", "ends"), [(refusals.MAX_NAMED, "”."), (refusals.MAX_NAMED + 2, "” and 2 more.")])
def test_many_refused_values_are_counted(count, ends):
    words = refused(**{f"n{i}": ["1"] for i in range(count)})
    assert words.endswith(f"“n{refusals.MAX_NAMED - 1}{ends}")


@pytest.mark.parametrize(
    ("count", "ends"),
    [
        (refusals.MAX_NAMED, "instead of “99”."),
        (refusals.MAX_NAMED + 1, "1 more value was replaced."),
        (refusals.MAX_NAMED + 2, "2 more values were replaced."),
    ],
)
def test_many_replaced_values_are_counted(count, ends):
    names = [f"n{i}" for i in range(count)]
    kinds = dict.fromkeys(names, link_fields.one_of(3, range(50)))
    words = refusals.notice_text(dict.fromkeys(names, 4), kinds, {name: ["99"] for name in names})
    assert words.count("the page uses") == refusals.MAX_NAMED
    assert words.endswith(ends)


def test_a_long_default_is_described_instead_of_written():
    long, brief = "x" * (refusals.MAX_LENGTH + 1), "x" * refusals.MAX_LENGTH
    for default, shown in ((long, "the default"), (brief, f"“{brief}”")):
        assert f"the page uses {shown} instead of “?”" in refusals.notice_text(
            {"a": default}, {"a": link_fields.one_of(default, [default])}, {"a": ["?"]}
        )
    changed = refusals.notice_text({"a": long}, {"a": link_fields.one_of("y", [long])}, {"a": ["?"]})
    assert f"the page uses “{brief}…” instead of “?”" in changed


def interrupted_page():
    """Draw a page whose first run ends before it has read the link, as when the browser sends two requests."""
    import streamlit as st

    from app.state import link_fields, url

    url.open_link()
    url.register_fields({"first": link_fields.integer(1, 0, 9)})
    if "again" not in st.session_state:
        st.session_state["again"] = True
        st.rerun()
    url.register_fields({"second": link_fields.integer(2, 0, 9)})
    st.write(f"{st.session_state['first']} {st.session_state['second']}")
    url.finish_run()


def test_an_interrupted_run_loses_no_value_of_the_link():
    page = AppTest.from_function(interrupted_page)
    page.query_params["first"], page.query_params["second"] = "5", "7"
    page.run()
    assert page.markdown[0].value == "5 7"
    assert page.query_params == {"first": "5", "second": "7"}


def test_a_value_changed_after_an_interrupted_run_is_kept():
    page = AppTest.from_function(interrupted_page)
    page.query_params["first"], page.query_params["second"] = "5", "7"
    page.run()
    page.session_state["second"] = 8
    page.run()
    assert page.markdown[0].value == "5 8"
