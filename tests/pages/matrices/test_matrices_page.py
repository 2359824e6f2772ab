"""Tests of the Matrices page without a browser: every variant and source, and the contents on and below the board."""

import gc
import re
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from driver import (
    board,
    board_settings,
    charts,
    links,
    message,
    metrics,
    numbers,
    open_page,
    read_number,
    read_percent,
    spoken,
    traces,
    visit,
)

import attention_core as ac
from app.jobs import cached
from app.state import presets
from app.state.session import AUTOMATIC, default_variants
from app.words.labels import label, sentence_name
from attention_core.analysis.matrix.informative_query import informative_query, occurs_once
from pages.matrices import comparison
from pages.matrices.options import OPENING_ROW, SUBJECT


def open_matrices(page="matrices", **state):
    return open_page(page, **state)


@pytest.mark.parametrize("source", ["text", "synthetic"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("view", ["weights", "difference"])
def test_matrices_opens_on_every_source(source, causal, view):
    at = open_matrices(input=source, causal=causal, view=view, n=40)
    assert not at.error
    assert board(at, "matrices.board")[1]


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_is_shown_or_left_out_with_a_reason(variant, causal):
    chosen = tuple(dict.fromkeys((ac.get("softmax"), ac.get(variant.key))))
    at = open_matrices(input="synthetic", n=24, variants=chosen, causal=causal)
    refused = [c.value for c in at.caption if "cannot be causal" in c.value]
    assert bool(refused) == (causal and variant.causal_reason is not None)


@pytest.mark.parametrize("more", ["numbers", "explain", "download"])
def test_every_view_below_the_board_is_drawn(more):
    at = open_matrices(input="synthetic", n=24, more=more)
    if more == "numbers":
        assert len(metrics(at)) == len(default_variants())
    if more == "explain":
        assert at.latex
    if more == "download":
        assert "ac.inputs.from_upload" in " ".join(c.value for c in at.code)


def test_a_pinned_row_outside_the_text_is_reset():
    at = open_matrices(input="synthetic", n=4, row=9)
    assert at.session_state["row"] == AUTOMATIC


def test_numbers_on_screen_equal_those_of_the_library():
    at = open_matrices(input="synthetic", n=24, heads=2, head=1, more="numbers")
    spec = ac.inputs.SyntheticSpec(n=24, heads=2)
    qkv = ac.inputs.from_synthetic(spec)
    table = metrics(at)
    for attention in default_variants():
        own, full = (a.weights(qkv.q, qkv.k)[1].double() for a in (attention, ac.get("softmax")))
        row = table[table.index.str.startswith(attention.title)].iloc[0]
        matrix_error = float((own - full).norm() / full.norm())
        assert read_percent(row["matrix error"]) == pytest.approx(matrix_error, abs=5e-4)
        v = qkv.v[1].double()
        output_error = float(((own - full) @ v).norm() / (full @ v).norm())
        assert read_percent(row["output error"]) == pytest.approx(output_error, abs=5e-4)


def test_the_table_compares_with_softmax_only_if_another_variant_is_shown():
    names = [
        set(metrics(open_matrices(input="synthetic", n=8, variants=tuple(map(ac.get, keys)), more="numbers")))
        for keys in (("softmax",), ("softmax", "local"))
    ]
    assert names[1] - names[0] >= {"matrix error", "output error", "misplaced weight", "KL (nats)", "shared top keys"}
    assert "entropy (nats)" in names[0] & names[1]


@pytest.mark.parametrize(("tokens", "asked", "there"), [(256, False, True), (257, False, False), (257, True, True)])
def test_ranks_of_long_inputs_are_computed_on_request(tokens, asked, there):
    at = open_matrices(input="synthetic", n=tokens, heads=1, variants=(ac.get("softmax"),), ranks=asked)
    shown = metrics(at)
    assert ("effective rank" in shown, "rank" in shown, "entropy (nats)" in shown) == (there, there, True)
    assert [each.label for each in at.toggle if each.label == "Ranks"] == (["Ranks"] if tokens > 256 else [])


def test_no_variant_is_called_closest_if_all_are_equal():
    at = open_matrices(input="synthetic", n=1)
    shown = " ".join(m.value for m in at.markdown)
    assert "**All variants have an output error of 0% compared with softmax.**" in shown
    assert "smallest" not in shown


OWN = ("softmax", "local", "reformer")


def panel_captions(at):
    """Return the captions of the board's panels by variant."""
    return {key: panel["caption"] for key, (panel, _matrix) in board(at, "matrices.board")[1].items()}


@pytest.mark.parametrize("view", ["weights", "difference"])
def test_variants_with_another_reference_are_named_and_not_ranked(view):
    # With one chunk Reformer is its own reference, which differs from softmax.
    variants = (ac.get("softmax"), ac.get("local"), ac.get("reformer", bucket_size=24))
    at = open_matrices(input="synthetic", n=24, variants=variants, view=view, more="numbers")
    text = spoken(at)
    assert re.search(r"\*\*Local with window 16 has an output error of \d+% compared with softmax\.", text)
    assert "**Reformer with 2 rounds has an output error of 0% compared with shared-QK softmax." in text
    assert "smallest" not in text
    table = metrics(at)
    assert table["reference"].tolist() == ["softmax", "softmax", "shared-QK softmax"]
    assert ac.variant("reformer").note in " ".join(c.value for c in at.caption)
    captions = panel_captions(at)
    assert "shared-QK softmax" in captions["reformer"]
    assert "shared-QK" not in captions["local"]
    if view == "difference":
        assert captions["local"].startswith("output error ")
        assert "Blue: more weight than the reference gives." in settings(at)["texts"]["reading"]


def test_a_variant_is_compared_with_its_own_reference():
    options = {"input": "synthetic", "n": 24, "more": "explain", "variants": tuple(map(ac.get, OWN))}
    for key, name, reference in (
        ("local", "Local with window 16", "softmax"),
        ("reformer", "Reformer with 2 rounds", "shared-QK softmax"),
    ):
        explained = " ".join(m.value for m in open_matrices(**options, explained=key).markdown)
        assert f"Compared with {reference}, **{name}** moves " in explained


def test_softmax_at_another_temperature_is_not_the_reference():
    sharp = ac.get("softmax", temperature=0.5)
    at = open_matrices(input="synthetic", n=24, variants=(sharp,), view="difference", more="numbers")
    assert "**Softmax with temperature 0.5 has an output error of " in " ".join(m.value for m in at.markdown)
    assert re.fullmatch(r"output error \d+%", panel_captions(at)["softmax"])


def test_hidden_special_tokens_are_not_counted():
    def count(**state):
        at = open_matrices(text="one two three four", variants=(ac.get("softmax"),), **state)
        return next(c.value for c in at.caption if "12 heads" in c.value)

    at = open_matrices(text="one two", special=False, variants=(ac.get("softmax"),), more="numbers")
    assert settings(at)["texts"]["note"] == "Not drawn: the special tokens [CLS] and [SEP]."
    share = re.search(r"\n(\d+)% of the weight is not drawn$", panel_captions(at)["softmax"])[1]
    assert f"{read_percent(metrics(at)['weight on [CLS] and [SEP]'].item()):.0%}" == f"{share}%"
    whole, rest = (list(table.value["metric"]) for table in at.table)
    assert whole == ["**Weights**", "row sums", "weight on [CLS] and [SEP]"]
    assert "entropy (nats)" in rest
    assert count(special=True) == "6 tokens · 12 heads × 32 dims"
    assert count(special=False) == ("4 tokens shown · 2 special tokens hidden, rows rescaled · 12 heads × 32 dims")
    assert count(special=False, page="masks") == "6 tokens · 12 heads × 32 dims"


@pytest.mark.parametrize("special", [False, True])
def test_the_table_says_which_numbers_leave_out_special_tokens(special):
    at = open_matrices(text="one two three four", special=special, more="numbers")
    note = "Without the special tokens [CLS] and [SEP] (the remaining weights are rescaled):"
    assert (note in spoken(at)) != special
    assert len(at.table) == 2 - special


def test_bars_show_few_enough_keys_to_name_them_all():
    at = open_matrices(input="synthetic", n=60, heads=1, head=0, row=5, more="row", variants=(PLAIN,))
    assert len(traces(at)["Softmax"]["x"]) == 24


PLAIN, SHARP = ac.get("softmax"), ac.get("softmax", temperature=0.5)
LOCAL, LINEAR = ac.get("local", window=4), ac.get("linear")


def settings(at, key="matrices.board"):
    """Return the settings of the board, or of another element of the page."""
    return board_settings(at, key)


def strips(at):
    """Return the tokens of the strips, their query, and the note on each variant's row."""
    [sent] = [c for c in at.get("bidi_component") if "-matrices.strips-" in f"{c.proto.id}-" and c.proto.bytes]
    text = settings(at, "matrices.strips")
    return message(sent)[0]["tokens"], text["pinned"], {line["key"]: line["note"] for line in text["strips"]}


def panel_names(panel):
    """Return a panel's title with the name and value of its setting."""
    knob = panel["knob"]
    return panel["title"] + (f" · {knob['name']} {knob['value']}" if knob else "")


@pytest.mark.parametrize(
    ("view", "variants", "panels"),
    [
        ("weights", (PLAIN, LOCAL), ["softmax", "local"]),
        ("difference", (PLAIN, LOCAL, LINEAR), ["local", "linear"]),
        ("difference", (PLAIN,), ["softmax"]),
        ("difference", (SHARP, LOCAL), ["softmax", "local"]),
    ],
)
def test_differences_leave_out_softmax_unless_it_is_the_only_variant(view, variants, panels):
    at = open_matrices(input="synthetic", n=12, variants=variants, view=view)
    drawn = board(at, "matrices.board")[1]
    assert list(drawn) == panels
    assert [panel_names(panel) for panel, _ in drawn.values()] == [label(a) for a in variants if a.key in panels]
    assert settings(at)["texts"]["unit"] == ("difference of weights" if view == "difference" else "weight")


def test_the_board_draws_weights_or_differences_from_softmax():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12, heads=2))
    own, full = (a.weights(qkv.q, qkv.k)[1].numpy() for a in (LINEAR, PLAIN))
    for view, expected in (("weights", own), ("difference", own - full)):
        at = open_matrices(input="synthetic", n=12, heads=2, head=1, variants=(PLAIN, LINEAR), view=view)
        np.testing.assert_allclose(board(at, "matrices.board")[1]["linear"][1], expected, atol=1e-3)


def test_the_headline_names_the_closest_variant():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, heads=1))
    variants = (PLAIN, LOCAL, LINEAR, ac.get("topk", k=12))
    full = PLAIN.attend(qkv.q, qkv.k, qkv.v)[0].double()
    errors = {a: float((a.attend(qkv.q, qkv.k, qkv.v)[0] - full).norm() / full.norm()) for a in variants[1:]}
    first, last = min(errors, key=errors.get), max(errors, key=errors.get)
    zero = float((qkv.v[0].double().mean(0) - full).norm() / full.norm())
    assert errors[first] < zero
    text = spoken(open_matrices(input="synthetic", n=24, heads=1, head=0, variants=variants))
    still = errors[first] > zero / 2
    closest = f"**{sentence_name(first)} has the smallest output error compared with softmax " + (
        f"(still {errors[first]:.0%}). It masks " if still else f"({errors[first]:.0%}).**"
    )
    hardly = f"({errors[last]:.0%}) is hardly smaller than that of equal weights on all keys ({zero:.0%})."
    assert closest in text.partition(f"The output error of **{sentence_name(last)}** {hardly}")[0]
    assert hardly in text


def test_nothing_is_said_about_special_tokens_that_the_input_does_not_have():
    at = open_matrices(input="synthetic", n=12, variants=(PLAIN, LOCAL, ac.get("linformer")), special=False)
    assert "Not drawn" not in settings(at)["texts"]["note"]
    assert ac.variant("reformer").note not in spoken(at, "caption")


def test_the_bars_of_a_pinned_row_are_those_on_the_board():
    options = {"input": "synthetic", "n": 12, "heads": 1, "head": 0, "variants": (PLAIN, LINEAR), "view": "difference"}
    at = open_matrices(**options, row=5, more="row")
    panels = board(at, "matrices.board")[1]
    bars = traces(at)
    assert list(bars) == ["Linear"]
    np.testing.assert_allclose(numbers(bars["Linear"]["y"]), panels["linear"][1][5], atol=1e-3)


def test_the_note_on_orange_bars_is_shown_only_if_a_bar_is_orange():
    notes = {}
    for row in range(0, 48, 6):
        options = {"input": "synthetic", "n": 48, "heads": 1, "head": 0, "variants": (PLAIN, ac.get("differential"))}
        at = open_matrices(**options, row=row, more="row")
        is_orange = min(numbers(traces(at)["Differential"]["y"])) < 0
        notes[is_orange] = any("orange: negative weights" in each.value for each in at.markdown)
        assert notes[is_orange] == is_orange
    assert notes == {True: True, False: False}


@pytest.mark.parametrize(("largest", "end"), [(0.3, 0.0), (0.4, 0.0), (0.5, 0.0), (0.51, 0.4), (7.0, 0.4)])
def test_a_much_larger_weight_than_softmaxs_does_not_extend_the_shared_scale(largest, end):
    assert comparison.scale_end(0.4, largest) == end


@pytest.mark.parametrize("variant", [LINEAR, ac.get("nystrom", landmarks=3)])
def test_the_shared_scale_ends_at_softmaxs_largest_weight_or_at_a_slightly_larger_one(variant):
    at = open_matrices(input="synthetic", n=12, heads=2, head=1, variants=(PLAIN, variant))
    drawn = board(at, "matrices.board")[1]
    sizes = [max(panel["highest"], -panel["lowest"]) for panel, _matrix in drawn.values()]
    assert settings(at)["ceiling"] == comparison.scale_end(drawn["softmax"][0]["highest"], max(sizes))
    assert "{most}" in settings(at)["texts"]["over"]


@pytest.mark.parametrize(
    ("attention", "low", "high"),
    [
        (LOCAL, 1, 40),
        (ac.get("local", window=64), 1, 64),  # from a link or a longer input: it is not changed
        (ac.get("nystrom"), 1, 40),
        (ac.get("reformer"), 1, 16),
        (ac.get("power_bert", keep=0.3), 0.05, 1.0),
    ],
)
def test_the_slider_of_a_panel_ends_at_the_number_of_tokens(attention, low, high):
    at = open_matrices(input="synthetic", n=40, variants=(PLAIN, attention))
    knob = board(at, "matrices.board")[1][attention.key][0]["knob"]
    assert knob["name"] == attention.variant.budget.name
    assert knob["value"] == getattr(attention.params, knob["name"])
    assert knob["value"] in knob["stops"]
    assert knob["stops"] == sorted(set(knob["stops"]))
    assert (knob["stops"][0], knob["stops"][-1]) == (low, high)
    assert board(at, "matrices.board")[1]["softmax"][0]["knob"] is None


def test_moving_a_slider_sends_only_its_panel():
    variants = (PLAIN, LOCAL, ac.get("nystrom"))
    at = open_matrices(input="synthetic", n=40, variants=variants)
    before = {key: panel["digest"] for key, (panel, _) in board(at, "matrices.board")[1].items()}
    at.session_state["variants"] = (PLAIN, ac.get("local", window=5), ac.get("nystrom"))
    at.run()
    after = {key: panel["digest"] for key, (panel, _) in board(at, "matrices.board")[1].items()}
    assert [key for key in before if before[key] != after[key]] == ["local"]


def test_a_dragged_slider_is_answered_with_the_displayed_options(monkeypatch):
    """Check concurrent changes: a quick visitor may have removed the variant, or changed the mask or the tokens."""
    held, draw = [], comparison.matrix_board

    def board_and_answers(panels, *, redraw, **sentence):
        event = draw(panels, redraw=redraw, **sentence)
        now = {"special": False, "causal": True, "variants": (PLAIN, ac.get("nystrom", landmarks=3))}
        with monkeypatch.context() as patch:
            others = {name: SimpleNamespace(value=value) for name, value in now.items()}
            for module in (comparison, comparison.variant_picker):
                patch.setattr(module, "SharedOptions", SimpleNamespace(**others))
            held.append((panels, redraw("nystrom"), redraw("local")))
        return event

    monkeypatch.setattr(comparison, "matrix_board", board_and_answers)
    at = open_matrices(text="The cat saw the dog.", special=True, variants=(PLAIN, LOCAL, ac.get("nystrom")))
    assert not at.exception
    panels, answered, removed = held[-1]
    assert removed is None
    assert answered.knob.value == 3
    assert answered.values.shape == panels[0].values.shape
    assert not np.array_equal(answered.values, panels[2].values)


def test_tokens_of_one_character_are_joined_in_the_text():
    at = open_page("matrices", text="好书 ok", model="smollm2", variants=(PLAIN, LOCAL), row=1)
    [sent] = [c for c in at.get("bidi_component") if "-matrices.strips-" in f"{c.proto.id}-" and c.proto.bytes]
    header = message(sent)[0]
    assert header["tokens"] == ["好", "好₂", "书", "书₂", "ok"]
    assert header["joined"] == [False, True, False, True, False]
    assert board(at, "matrices.board")[0]["row_labels"] == header["tokens"]
    assert "5 tokens" in at.caption[0].value


def test_an_informative_row_is_pinned_first_without_changing_the_address():
    at = visit("matrices", {"text": ["@repeats"], "variants": ["softmax", "local~window~2"], "special": ["0"]})
    words, row, notes = strips(at)
    weights = board(at, "matrices.board")[1]["softmax"][1]
    assert row == informative_query(weights, [True] * len(words), occurs_once(words)) == settings(at)["pinned"]
    assert words == presets.texts()["repeats"].split()
    target = int(np.nanargmax(weights[row]))
    place = f" ({target})" if words.count(words[target]) > 1 else ""
    assert notes["softmax"].startswith(f"top keys: “{words[target]}”{place} ")
    assert "row" not in at.run().query_params


@pytest.mark.parametrize(("word", "row"), [("none", None), ("3", 3), ("0", 0)])
def test_a_row_in_the_link_overrides_the_default(word, row):
    at = visit("matrices", {"input": ["synthetic"], "n": ["12"], "row": [word]})
    assert not at.warning
    assert strips(at)[1] == settings(at)["pinned"] == row
    assert at.selectbox(key="row.pinned").value == row
    assert at.run().query_params["row"] == word


def test_an_empty_address_opens_with_a_subject_that_attends_most_to_its_verb():
    at = visit("matrices", {})
    words, row, notes = strips(at)
    assert (words[row], words[row + 1]) == SUBJECT
    assert notes["softmax"].startswith(f"top keys: “{SUBJECT[1]}” ")
    assert at.run().query_params["row"] == "opening"
    assert strips(visit("matrices", {"text": ["@story"]}))[1] != row, "a link keeps its meaning"
    other = open_matrices(text="One loved the sea.", variants=(PLAIN,), row=OPENING_ROW)
    assert strips(other)[1] is not None
    assert "row" not in other.run().query_params


def test_the_query_menu_pins_and_unpins_a_row():
    at = open_matrices(input="synthetic", n=12, variants=(PLAIN, LOCAL))
    assert strips(at)[1] is not None
    at.selectbox(key="row.pinned").set_value(None).run()
    assert at.query_params["row"] == "none"
    assert strips(at)[1] is None
    assert not any(strips(at)[2].values())
    at.selectbox(key="row.pinned").set_value(7).run()
    assert (at.query_params["row"], strips(at)[1]) == ("7", 7)


def test_special_tokens_are_never_pinned_first():
    for special in (False, True):
        at = open_matrices(text="cat. dog. cat! dog?", variants=(PLAIN,), special=special)
        words, row, _ = strips(at)
        assert words[row] in ("cat", "dog")


@pytest.mark.parametrize(
    ("special", "row", "link", "query"),
    [
        (False, 1, "Show them", "#?special=1&row=2"),
        (False, None, "Show them", "#?special=1&row=none"),
        (True, 2, "Hide special tokens", "#?special=0&row=1"),
        (True, 0, "Hide special tokens", "#?special=0&row=none"),
    ],
)
def test_a_link_shows_or_hides_special_tokens_and_keeps_the_pinned_query(special, row, link, query):
    at = open_matrices(text="one two three", variants=(PLAIN,), special=special, row=row)
    shown = settings(at)
    assert (shown["texts"]["link"], shown["address"]) == (link, query)
    shown = settings(open_matrices(input="synthetic", n=12, variants=(PLAIN,), special=special))
    assert (shown["texts"]["link"], shown["address"]) == ("", "")


def test_the_largest_changes_equal_the_numbers_of_the_panel():
    options = {"input": "synthetic", "n": 12, "heads": 1, "head": 0, "row": 5}
    at = open_matrices(**options, variants=(PLAIN, LINEAR))
    panels = {key: matrix for key, (_, matrix) in board(at, "matrices.board")[1].items()}
    lost = int(np.argmin((panels["linear"] - panels["softmax"])[5]))
    change = panels["linear"][5, lost] - panels["softmax"][5, lost]
    assert change < -0.01
    largest, second = np.argsort(-panels["linear"][5])[:2]
    texts = [f"“t{key}” {panels['linear'][5, key]:.0%}" for key in (largest, second)]
    assert strips(at)[2]["linear"] == f"top keys: {'; '.join(texts)}"
    difference = open_matrices(**options, variants=(PLAIN, LINEAR), view="difference")
    assert list(strips(difference)[2]) == ["linear"]
    assert f"largest changes: “t{lost}” −{-change:.0%}" in strips(difference)[2]["linear"]


def test_a_link_with_a_coloured_variant_unfolds_its_text():
    options = {"input": ["synthetic"], "n": ["12"], "variants": ["softmax", "local"], "coloured": ["local"]}
    assert settings(visit("matrices", options), "matrices.strips")["unfolded"] == "local"
    without_coloured = visit("matrices", {**options, "coloured": ["linear"]})
    assert settings(without_coloured, "matrices.strips")["unfolded"] is None
    assert "coloured" in without_coloured.warning[0].value


def test_bars_without_a_row_show_instructions():
    at = open_matrices(input="synthetic", n=12, row=None, more="row")
    assert not charts(at)
    assert "to draw the row of its query as bars" in at.info[0].value


def test_all_heads_are_listed_in_the_chosen_order_and_can_be_selected():
    options = {"text": ["@sequence"], "more": ["heads"], "variants": ["softmax"]}
    at = visit("matrices", {**options, "head_order": ["induction"]})
    sentence = settings(at, "heads.large")
    assert sentence["in_order"]
    scores = [read_number(each[2].split(" · ")[1]) for each in sentence["heads"]]
    assert scores == sorted(scores, reverse=True)
    layer, number = sentence["heads"][0][:2]
    assert sentence["heads"][0][2].startswith(f"L{layer} H{number} · ")
    assert f"**Layer {layer}, head {number}** ranks first" in spoken(at)
    sentence = settings(visit("matrices", options), "heads.large")
    assert not sentence["in_order"]
    assert {note for _layer, _head, note, *_ in sentence["heads"]} == {""}, "the grid's rows and columns say it"


def test_every_page_links_to_all_heads():
    at = visit("matrices", {"input": ["synthetic"], "n": ["12"], "view": ["difference"]})
    at.button(key="heads.open").click().run()
    assert {"view": "difference", "more": "heads"}.items() <= at.query_params.items()
    assert settings(at, "heads.large")["reveal"]
    assert not settings(at.run(), "heads.large")["reveal"]
    elsewhere = visit("masks", {"input": ["synthetic"], "n": ["12"]})
    [link] = [each for each in links(elsewhere) if "All heads" in each.label]
    assert set(link.query_string.split("&")) == {"input=synthetic", "n=12", "more=heads"}


def test_an_open_page_keeps_only_cached_matrices(monkeypatch):
    """Check memory: an open page can redraw its panels, and 8 matrices of 512 tokens took 16 MiB per visitor."""
    seen, kept, compared = [], [], cached.matrix

    def watched(*args):
        found = compared(*args)
        seen.append(weakref.ref(found))
        return found

    monkeypatch.setattr(cached, "matrix", watched)
    monkeypatch.setattr(comparison, "matrix_board", lambda *args, redraw, **settings: kept.append(redraw))
    assert not open_matrices(input="synthetic", n=24, seed=41).exception
    for cache in cached._caches:
        for key in list(cache._entries):
            cache.drop(key)
    gc.collect()
    assert kept
    assert seen
    assert not any(each() for each in seen)


def test_a_missing_input_has_a_link_that_opens_the_folded_sidebar():
    at = open_matrices(input="upload")
    assert "[Choose the input](#input)" in [each.value for each in at.main.caption]
