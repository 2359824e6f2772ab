"""Tests that every page runs in Streamlit's AppTest on every kind of input, and that bad input gives a message."""

import io
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from driver import drawn, go, is_chart, links, message, moved, open_page, visit, ways

import attention_core as ac
from app.page import discover
from app.state import presets, url
from app.state.controls import Options
from app.state.session import default_variants, read_text, write_text

ROOT = Path(__file__).parent.parent.parent
DEFAULT = default_variants()


def open_app(page="matrices", **state):
    return open_page(page, **state)


def titles(at):
    return [w.value for w in at.title] + [w.value for w in at.markdown if w.value.startswith("#")]


@pytest.mark.parametrize("page", discover())
def test_every_page_opens_without_an_error(page):
    at = open_app(page)
    assert not at.error
    words = "How does Nyström attention work?" if page == "inside" else discover()[page].question or "Attention Lab"
    assert any(title.startswith(f"# {words}") for title in titles(at))


def inside_links(at):
    """Return the variants, with their settings, that the page links to on the Inside page."""
    found = [(link.page, parse_qs(link.query_string), link.label) for link in links(at)]
    found += ways(*(each.value for each in at.markdown))
    found = [(page, query) for page, query, words in found if words == "See it step by step"]
    assert all(page == "inside" for page, _ in found)
    return [query["inside"] for _, query in found]


def test_every_variant_with_a_story_is_linked_where_it_is_shown():
    found = inside_links(open_app("home"))
    assert sorted(found) == sorted([v.key] for v in ac.all_variants() if v.anatomy)
    variants = (ac.get("softmax"), ac.get("nystrom", landmarks=7))
    assert inside_links(open_app(variants=variants, more="explain", explained="nystrom")) == [["nystrom~landmarks~7"]]
    assert inside_links(open_app(variants=variants, more="explain")) == []


@pytest.mark.parametrize("text", ["", "   \n ", "\u200b", "\x00\x01"])
def test_a_text_without_words_gives_a_sentence_and_stays(text):
    at = open_app(text=text)
    assert at.session_state["text"] == text
    if not text.strip():
        assert "empty" in at.error[0].value


@pytest.mark.parametrize(
    "text", ["a", "🙂🙂 👩‍👩‍👧", "مرحبا بالعالم", "图书管理员", "x" * 100_000, "word " * 20_000, "<b>**[x](y)</b>"]
)
def test_unusual_texts_are_read_or_cut_with_a_notice(text):
    at = open_app(text=text, variants=(ac.get("softmax"), ac.get("local")))
    assert not at.error
    if len(text) > 20_000:
        assert any("characters" in i.value for i in at.info)


@pytest.mark.parametrize("model", ["nobody/nothing-at-all", "minilmm", "../../etc/passwd", "a/b/c", ""])
def test_a_model_that_cannot_be_loaded_gives_a_sentence(model):
    at = open_app(model=model)
    assert len(at.error) == 1


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


Q = np.ones((2, 5, 4), np.float32)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (npz(q=Q, k=Q, v=Q), None),
        (npz(q=Q, k=Q), "v"),
        (npz(q=Q, k=Q[:, :3], v=Q), "do not match"),
        (npz(q=Q * np.nan, k=Q, v=Q), "q"),
        (npz(q=np.array([{}, {}], object), k=Q, v=Q), "q"),
        (b"not a zip", "npz"),
        (b"", "npz"),
    ],
)
def test_an_upload_is_read_or_gives_a_sentence(data, word):
    from app.ui.input_forms import UPLOAD

    at = open_app(input="upload", **{UPLOAD: ac.inputs.UploadSource.of("mine.npz", data)})
    assert bool(at.error) == (word is not None)
    if word:
        assert word in at.error[0].value


def test_a_missing_upload_shows_instructions():
    at = open_app(input="upload")
    assert not at.error
    assert any("Upload an .npz" in i.value for i in at.info)


def test_a_malformed_link_opens_the_defaults_and_names_the_faults():
    at = visit("home", {"layer": "many", "variants": "nystrm", "<script>": "1"})
    assert at.session_state["variants"] == DEFAULT
    shown = at.warning[0].value if at.warning else ""
    assert all(name in shown for name in ("layer", "variants", "script"))


def open_link(page="matrices", **query):
    at = visit("home", query)  # Home does not read the input.
    return at if page == "home" else go(at, page)


@pytest.mark.parametrize("page", ["matrices", "masks", "inside"])
def test_values_beyond_the_input_fall_back_and_are_reported(page):
    at = open_link(page, head="99", layer="999", model="foo")
    assert not at.error
    assert (at.session_state["layer"], at.session_state["head"]) == (presets.LAYER, presets.HEAD)
    warning = at.warning[0].value
    assert "For `head`, the page uses “3” instead of “99”" in warning
    assert "For `layer`, the page uses “2” instead of “999”" in warning
    assert not {"head", "layer", "model"} & set(at.query_params)
    assert not at.run().warning  # The warning is shown for one run.


def test_a_hub_model_is_requested_only_if_the_profile_allows_it(monkeypatch):
    known = {"model": Options.shared()["model"]}
    assert url.read_link({"model": ["owner/name"]}, known) == ({"model": "owner/name"}, ())
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert url.read_link({"model": ["owner/name"]}, known) == ({"model": "minilm"}, ("model",))
    assert url.read_link({"model": ["smollm2"]}, known) == ({"model": "smollm2"}, ())


def test_a_link_with_too_many_variants_or_no_reference_shows_a_part():
    many = [v.key for v in ac.all_variants() if v.key != "softmax"]
    values, refused = url.read_link({"variants": many}, Options.shared())
    assert refused == ("variants",)
    assert [a.key for a in values["variants"]] == ["softmax", *many][: len(values["variants"])]
    at = open_app(
        "matrices", more="explain", variants=url.read_link({"variants": ["local"]}, Options.shared())[0]["variants"]
    )
    assert not at.exception


def test_an_empty_text_is_in_the_address():
    at = open_app(text="one two", causal=True)
    before = at.query_params["text"]
    at.text_area(key="text").set_value("").run()
    assert "empty" in at.error[0].value
    assert at.query_params["text"] != before
    words = at.query_params["text"]
    assert read_text(words if isinstance(words, list) else [words]) == ""
    assert "text" not in at.text_area(key="text").set_value(presets.texts()["english"]).run().query_params


def test_following_a_link_keeps_a_text_that_is_too_long_for_links():
    import random

    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz ", k=19_000))
    linked = write_text(noise)
    beginning = read_text(linked)
    assert noise.startswith(beginning)
    at = open_app("home", family=["sparse"], text=noise).run()
    go(at, "timing", {"causal": "1", "text": linked})
    assert at.session_state["causal"]
    assert at.session_state["text"] == noise
    go(at, "timing", {"causal": "1", "text": write_text("another text")})
    assert at.session_state["text"] == "another text"
    go(at, "timing", {"causal": "0", "text": linked})
    assert at.session_state["text"] == beginning


def test_a_knob_changes_only_its_own_variant():
    at = open_app(input="synthetic", n=24)
    at.select_slider(key="knob.local.window").set_value(4).run()
    changed = {a.key: a.params.changed() for a in at.session_state["variants"]}
    assert changed.pop("local") == {"window": "4"}
    assert not any(changed.values())


SMOL = {"model": "smollm2", "text": "the cat saw the dog", "layer": 12, "head": 3}


@pytest.mark.parametrize("page", ["matrices", "masks", "entropy", "error", "inside"])
def test_a_causal_model_without_its_mask_is_reported(page):
    def notices(**state):
        at = open_app(page, **(SMOL | state))
        return [c.value for c in at.caption if "model masks later tokens" in c.value]

    qkv = ac.inputs.from_text(SMOL["text"], model="smollm2", layer=12)
    later = ac.get("softmax").weights(qkv.q, qkv.k)[3].double().triu(1).sum(-1).mean()
    [words] = notices(causal=False)
    assert f"{float(later):.0%} of the softmax weight in head 3" in words
    assert "Switch **Causal** on" in words
    assert not notices(model="minilm", layer=2, causal=False)
    if page == "inside":  # This page shows Nyström, which is never masked.
        [words] = notices(causal=True)
        assert f"{float(later):.0%} of the softmax weight" in words
    else:
        assert not notices(causal=True)


def test_choosing_a_model_sets_the_causal_switch_as_in_training():
    at = open_app("matrices", input="text", text="the cat", layer=2)
    assert not at.session_state["causal"]
    for model, causal in (("smollm2", True), ("minilm", False)):
        at.selectbox(key="model").set_value(model).run()
        assert at.session_state["causal"] == causal
        assert at.toggle(key="causal").value == causal


def test_the_causal_page_never_reports_a_missing_mask():
    at = open_app("causal", **SMOL, causal=False)
    assert not [c.value for c in at.caption if "model masks later tokens" in c.value]


def test_the_share_form_sets_the_format_of_saved_charts():
    at = open_page("causal", input="synthetic", n=8, d=4, heads=1, c_view="generation")
    control = next(each for each in drawn(at) if each.label == "Format of the camera button")
    for kind in ("png", "svg"):
        chart = next(each for each in at.get("bidi_component") if is_chart(each))
        assert message(chart)[0]["file"] == f"generation-time.{kind}"
        moved(control)
        at.run()
