"""Tests of the Masks page without a browser: every variant and part, links, and unusual input."""

import numpy as np
import pytest
import streamlit as st
from driver import board, board_settings, charts, chosen, open_page, spoken, table, visit

import attention_core as ac
from app.words.i18n import escape_markdown
from app.words.labels import label
from attention_core.analysis.masks.pattern import has_pattern
from attention_core.limits import current
from pages.masks.board import show_keys_of
from pages.masks.hashed_order import sorting_note
from pages.masks.numbers import SYMBOLS, symbol_text

PATTERNED = [v for v in ac.all_variants() if has_pattern(v)]


def open_masks(**state):
    return open_page("masks", **{"input": "synthetic", "n": 24} | state)


def matrices(at):
    """Return the patterns on the board, by variant."""
    return {key: matrix for key, (_panel, matrix) in board(at, "masks.board")[1].items() if key != "reach"}


def reach(at):
    """Return the caption of the stack's panel, and the name of each cell's category, such as "layer 1"."""
    panel, codes = board(at, "masks.board")[1]["reach"]
    sent = board_settings(at, "masks.board")
    names = [
        each["name"] if each["frame"] <= sent["frame"] else sent["texts"]["upcoming"] for each in sent["categories"]
    ]
    return panel["caption"], np.array(names)[codes.astype(int) - 1]


@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
@pytest.mark.parametrize("causal", [False, True])
def test_every_variant_is_drawn_or_left_out_with_a_reason(variant, causal):
    at = open_masks(variants=chosen(*dict.fromkeys(("softmax", variant.key))), causal=causal)
    captions = " ".join(c.value for c in at.caption)
    if causal and variant.causal_reason:
        assert "cannot be causal" in captions
        assert any("No variant shown uses a mask" in i.value for i in at.info)
    elif has_pattern(variant):
        panels = matrices(at)
        assert list(panels) == [variant.key]
    else:
        assert variant.title in captions or any("uses a mask" in i.value for i in at.info)


@pytest.mark.parametrize("key", ["nsa", "local"])
def test_a_note_names_the_variants_whose_queries_read_means_of_keys(key):
    notes = [each.value for each in open_masks(variants=chosen("softmax", key), masks_part="numbers").caption]
    assert any("Native sparse: queries read some keys only as block means." in note for note in notes) == (
        key != "local"
    )


def test_the_board_draws_the_masks():
    at = open_masks(variants=tuple(ac.get(key) for key in ("softmax", "local", "bigbird")), causal=True)
    panels = matrices(at)
    for key in ("local", "bigbird"):
        hidden = np.triu(np.ones((24, 24), bool), 1)
        assert np.array_equal(np.isnan(panels[key]), hidden)
        assert np.array_equal(panels[key] > 0, ac.get(key).mask(24, causal=True).numpy())


def test_the_numbers_equal_those_of_the_library():
    at = open_masks(variants=tuple(ac.get(key) for key in ("softmax", "local", "atrous")), masks_part="numbers")
    table = at.dataframe[0].value.set_index("variant")
    assert table.loc["Softmax", "pairs allowed"] == 24 * 24
    assert table["pairs allowed"].iloc[2] == ac.get("atrous").mask(24).sum()
    assert list(table["layers to connect all"]) == ["1", "2", "never"]
    assert table["of n²"].iloc[0] == 1


@pytest.mark.parametrize("part", ["reach", "numbers", "order", "download"])
@pytest.mark.parametrize("causal", [False, True])
def test_every_part_opens_with_every_pattern(part, causal):
    at = open_masks(variants=chosen("softmax", *(v.key for v in PATTERNED)), masks_part=part, causal=causal, head=-1)
    assert not at.error


def test_a_preset_and_the_layers_make_the_stack():
    at = open_masks(n=60, variants=(ac.get("softmax"), ac.get("local", window=7), ac.get("atrous", stride=8)))
    assert "connects all tokens in 2 layers.**" in spoken(at)
    at.button_group(key="reach.preset").set_value("local").run()
    assert at.session_state["stack"] == ("local",)
    assert "All tokens are connected after 9 layers." in spoken(at)
    at.button(key="reach.add.atrous").click().run()
    at.button(key="reach.layer.0").click().run()
    assert at.session_state["stack"] == ("atrous",)
    assert "because information moves only over distances that are multiples of 8 tokens." in spoken(at)
    at.button(key="reach.layer.0").click().run()
    assert any("stack is empty" in i.value for i in at.info)


def test_layers_beyond_the_limit_are_dropped():
    most = current().stack_layers
    at = open_masks(stack=("local",) * (most - 1))
    # The stack was filled by an earlier click, after which the page has not been redrawn yet.
    at.session_state["stack"] = ("local",) * most
    at = at.button(key="reach.add.atrous").click().run()
    assert at.session_state["stack"] == ("local",) * most


def test_the_tokens_that_can_read_a_token_and_that_it_can_read_are_counted():
    at = open_masks(
        n=30,
        variants=(ac.get("softmax"), ac.get("local", window=2)),
        stack=("local",),
        stack_depth=4,
        front=10,
        front_way="heard",
        causal=True,
    )
    allowed = "tokens that the causal mask allows"
    assert f"3 of the 20 {allowed} can read “t10” after 1 layer, 5 after 2, 7 after 3 and 9 after 4." in spoken(at)
    at.selectbox(key="front").set_value(28).run()
    assert f"all 2 {allowed} can read “t28” after 1 layer." in spoken(at)
    at.selectbox(key="front").set_value(29).run()
    assert "can read “t29”" not in spoken(at)
    at.selectbox(key="front").set_value(10).run()
    at.button_group(key="front_way").set_value("hears").run()
    text = spoken(at)
    assert f"“t10” can read 3 of the 11 {allowed} after 1 layer, 5 after 2, 7 after 3 and 9 after 4." in text
    assert "For example, “t8” reads “t6” in layer 1, and “t10” reads “t8” in layer 2." in text
    at.selectbox(key="front").set_value(1).run()
    text = spoken(at)
    assert f"“t1” can read all 2 {allowed} after 1 layer." in text
    assert "For example" not in text


def test_a_pinned_row_shows_the_keys_of_its_query_below_the_matrices(monkeypatch):
    for token, way in ((5, "hears"), (None, "heard")):
        state = {"front": 9, "front_way": "heard"}
        monkeypatch.setattr(st, "session_state", state)
        show_keys_of(token)
        assert state == {"front": token, "front_way": way}


def test_layers_without_causal_form_are_named():
    at = open_masks(stack=("power_bert", "local"), causal=True)
    assert any("PoWER-BERT" in c.value and "left out" in c.value for c in at.caption)
    assert not open_masks(stack=("power_bert",), causal=True).exception


def test_the_hashed_order_matches_the_round():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24))
    reformer = ac.get("reformer")
    inside = reformer.variant.anatomy(qkv.q, qkv.k, qkv.v, reformer.params, causal=False)
    at = open_masks(variants=(ac.get("softmax"), reformer), masks_part="order", head=1, hash_round=1)
    header, by_hash = board(at, "masks.order")
    assert header["row_labels"] == [qkv.tokens[i] for i in inside["order"][1, 1]]
    assert header["panels"][0]["borders"]
    at.button_group(key="hash_order").set_value("original").run()
    header, as_read = board(at, "masks.order")
    assert header["row_labels"] == list(qkv.tokens)
    order = inside["order"][1, 1].numpy()
    assert np.array_equal(by_hash["order"][1], as_read["order"][1][np.ix_(order, order)])
    assert not np.array_equal(by_hash["order"], as_read["order"])
    assert not header["panels"][0]["borders"]


def test_the_view_of_hashes_is_offered_if_a_variant_sorts_by_a_hash():
    plain = open_masks(masks_part="numbers")
    assert "Hash-based masks" not in [each.content for each in plain.button_group(key="masks_part").proto.options]
    at = open_masks(masks_part="order")
    assert "sorts tokens by a hash" in at.info[0].value
    at.button(key="order.add").click().run()
    assert at.session_state["variants"][-1].key == "reformer"
    assert not at.info
    assert board(at, "masks.order")
    at.button_group(key="masks_part").set_value("numbers").run()
    assert at.query_params["masks_part"] == "numbers"


def test_letters_in_numbers_of_pairs_are_explained():
    assert {*"".join(v.pairs for v in PATTERNED)} - set("n 0123456789()+-/²") <= SYMBOLS.keys()
    attentions = [
        ac.get("local", window=4),
        ac.get("sparse", window=4, stride=8),
        ac.get("topk", k=3),
        ac.get("linear"),
    ]
    assert symbol_text(attentions) == "w: window (4) · r: stride (8) · k: keys kept per query (3)"
    assert symbol_text([ac.get("local", window=4), ac.get("local", window=5)]) == "w: window"
    assert symbol_text([ac.get("linear")]) == ""


def test_a_button_selects_all_masks():
    at = open_masks(variants=(ac.get("softmax"), ac.get("local", window=3)))
    next(b for b in at.button if b.label == "All masks").click().run()
    assert {a.key for a in at.session_state["variants"]} == {"softmax", *(v.key for v in PATTERNED)}
    assert ac.get("local", window=3) in at.session_state["variants"]


def test_variants_without_patterns_show_instructions():
    at = open_masks(variants=(ac.get("softmax"), ac.get("linear")))
    assert any("All masks" in i.value for i in at.info)


@pytest.mark.parametrize("n", [1, 2])
def test_every_part_opens_with_one_or_two_tokens(n):
    for part in ("reach", "numbers", "order"):
        at = open_masks(n=n, masks_part=part, variants=tuple(ac.get(k) for k in ("softmax", "local", "reformer")))
        assert not at.exception


def test_a_link_carries_the_stack_and_invalid_stacks_are_reported():
    link = {"stack": ["sparse", "local"], "stack_depth": "5", "front": "3", "front_way": "hears", "masks_part": "reach"}
    at = visit("masks", link)
    assert at.session_state["stack"] == ("sparse", "local")
    assert (at.session_state["stack_depth"], at.session_state["front"]) == (5, 3)
    bad = visit("masks", {"stack": ["softmax"], "stack_depth": "99", "front": "-1"})
    assert bad.session_state["stack"] == ("local", "atrous")
    text = bad.warning[0].value.replace("\\", "")
    assert all(name in text for name in ("stack", "stack_depth", "front"))


def test_the_captions_equal_the_numbers_of_the_library():
    variants = chosen("softmax", "local", "atrous")
    local, atrous = (a.mask(24, causal=True).sum().item() for a in variants[1:])
    at = open_masks(variants=variants, causal=True, head=0)
    assert atrous < local
    assert "**Atrous** reads keys 8 and 16 tokens away, and **Local** fills the gaps between them." in spoken(at)
    panels = board(at, "masks.board")[1]
    window = variants[1].params.window
    layers = -(-23 // window)
    costs = f"connects all tokens after {layers} layers"
    assert (
        f"Together, the {layers} layers allow {layers * local / 300:.2f} times the pairs"
        in panels["local"][0]["details"]
    )
    assert {key: (panel["title"], panel["caption"]) for key, (panel, _) in panels.items() if key != "reach"} == {
        "local": ("Local", f"{costs}\nup to {window} tokens away · {local / 300:.1%} of pairs"),
        "atrous": ("Atrous", f"never connects all tokens\nevery 8 tokens · {atrous / 300:.1%} of pairs"),
    }


def test_the_headline_begins_with_the_stack():
    text = spoken(open_masks(n=10, variants=chosen("softmax", "local", "atrous"), stack=("local",)))
    assert text.index("**The stack ") < text.index("**Atrous** alone never connects all tokens")
    long = spoken(open_masks(n=60, variants=chosen("softmax", "local", "atrous"), stack=("local",)))
    assert "layers, the stack cannot connect the first and the last" in long
    assert "alone never connects all tokens" not in long
    alone = spoken(open_masks(stack=(), variants=chosen("local")))
    assert "**All tokens are connected by 2 layers of Local (" in alone


def test_the_headline_begins_with_chosen_variants_if_the_stack_has_none_of_them():
    text = spoken(open_masks(variants=chosen("softmax", "nsa")))
    assert "**All tokens are connected by 1 layer of Native sparse (partly as means).** **The stack Local" in text
    assert "All tokens are connected by" not in spoken(open_masks(variants=chosen("softmax", "nsa", "local")))
    assert "All tokens are connected by" not in spoken(open_masks(variants=chosen("softmax")))


def test_an_empty_stack_is_reported_in_the_view_that_needs_it():
    for part, found in (("reach", True), ("numbers", False)):
        notes = [each.value for each in open_masks(stack=(), variants=chosen("local"), masks_part=part).info]
        assert any("stack is empty" in each for each in notes) == found


def test_layers_after_the_one_that_connects_all_tokens_are_no_reason():
    variants = (ac.get("local", window=16), ac.get("atrous", stride=8), ac.get("bigbird"))
    text = spoken(open_masks(n=106, variants=variants, stack=("local", "local", "atrous", "bigbird"), stack_depth=4))
    assert "The stack connects all tokens because **Local** also moves information" in text


def test_the_text_on_a_causal_stack_also_explains_variants_outside_it():
    variants = (*chosen("sparse", "local", "atrous"), ac.get("longformer", window=2))
    shown = spoken(open_masks(n=16, variants=variants, stack=("sparse", "local"), causal=True))
    assert "**Atrous** alone never connects all tokens" in shown
    assert "**Longformer**'s global token is the first token." in shown


def test_shares_in_any_head_are_shown_for_all_heads_only():
    for head, words in ((-1, "per head"), (0, "% of pairs")):
        at = open_masks(variants=chosen("softmax", "reformer"), head=head, heads=3, n=64)
        assert words in board(at, "masks.board")[1]["reformer"][0]["caption"]


@pytest.mark.parametrize(("causal", "possible", "column"), [(False, 576, "of n²"), (True, 300, "of n (n + 1) / 2")])
def test_the_table_counts_possible_pairs(causal, possible, column):
    local = ac.get("local", window=5)
    at = open_masks(variants=(ac.get("softmax"), local), masks_part="numbers", causal=causal)
    table = at.dataframe[0].value.set_index("variant")
    mask = local.mask(24, causal=causal)
    row, pairs = table.loc[label(local)], int(mask.sum())
    assert row["pairs allowed"] == pairs
    assert row[column] == pytest.approx(pairs / possible, abs=5e-4)
    assert row["keys per query"] == pytest.approx(pairs / 24)
    assert row["formula"] == local.variant.pairs
    queries, keys = mask.nonzero(as_tuple=True)
    assert row["farthest key"] == (queries - keys).abs().max()
    assert table.loc["Softmax", "formula"] == "n²"
    assert table.loc["Softmax", "farthest key"] == 23
    assert "n: 24 tokens · w: window (5)" in spoken(at, "caption")


def test_table_and_sentence_show_the_same_reach():
    variants = (ac.get("softmax"), ac.get("local", window=2))
    at = open_masks(variants=variants, stack=("local",), stack_depth=3)
    words, first = reach(at)
    layers = -(-np.abs(np.arange(24)[:, None] - np.arange(24)) // 2)
    names = np.array(["the token itself", "layer 1", "layer 2", "layer 3", "not connected"])
    assert np.array_equal(first, names[np.minimum(layers, 4)])
    share = (layers <= 3).mean()
    assert words == f"{share:.1%} of pairs connected after 3 layers"
    assert f"**After 3 layers, the stack Local connects {share:.1%} of the pairs of tokens.**" in spoken(at)
    assert "All tokens are connected after 12 layers." in spoken(at)
    shares = table(at)
    assert list(shares.index) == [label(variants[1]), "Stack: Local"]
    assert list(shares) == ["1 layer", *(f"{number} layers" for number in range(2, 9))]
    assert set(shares["3 layers"]) == {f"{share:.1%}"}
    assert "24 of the 24" not in spoken(at)
    assert "(middle)" in at.selectbox(key="front").placeholder
    assert "“" + escape_markdown(board(at, "masks.board")[0]["row_labels"][12]) + "”" in spoken(at)


def test_missed_pairs_are_those_of_the_head():
    reformer = ac.get("reformer", bucket_size=4)
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24))
    inside = reformer.variant.anatomy(qkv.q, qkv.k, qkv.v, reformer.params, causal=False)
    buckets = inside["buckets"][1, 1]
    missed = inside["missed"][1] & (buckets[:, None] == buckets) & ~np.eye(24, dtype=bool)
    at = open_masks(variants=(ac.get("softmax"), reformer), masks_part="order", head=1, hash_round=1)
    note = sorting_note(int(missed.sum()), head=1, is_sorted=True, causal=False, rounds=2)
    assert note in spoken(at, "caption")
    panel = board(at, "masks.order")[1]["order"][0]
    assert (panel["title"], panel["caption"]) == (label(reformer), "round 2, sorted by bucket")
    at = open_masks(variants=(ac.get("softmax"), reformer), masks_part="order", hash_order="original")
    assert board(at, "masks.order")[1]["order"][0]["caption"] == "round 1, in text order"


@pytest.mark.parametrize("part", ["reach", "numbers", "order", "download"])
def test_the_reach_of_the_stack_is_on_the_board_of_the_patterns_in_every_view(part):
    at = open_masks(variants=chosen("softmax", "local"), masks_part=part, stack=("local",), stack_depth=1)
    assert set(matrices(at)) == {"local"}
    assert reach(at)[0].endswith("% of pairs connected after 1 layer")
    assert "After 1 layer, the stack Local connects" in spoken(at)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_layers_of_the_stack_are_the_frames_of_an_animation_that_ends_where_all_is_connected(depth):
    at = open_masks(n=60, variants=chosen("softmax", "local"), stack=("local",), stack_depth=depth)
    text = board_settings(at, "masks.board")
    assert [(each["name"], each["frame"]) for each in text["categories"] if each["group"]] == [
        *((f"layer {number}", number) for number in (1, 2, 3, 4)),
        ("the token itself", 0),
        ("not connected", 0),
    ]
    assert (text["frame"], text["last_frame"]) == (min(depth, 4), 4)
    frames = board(at, "masks.board")[1]["reach"][0]["frames"]
    assert len(frames) == 4
    assert frames[2].endswith("% of pairs connected after 3 layers")
    assert frames[3] == "connects all tokens after 4 layers"
    assert reach(at)[0] == frames[min(depth, 4) - 1]
    assert board(at, "masks.board")[1]["reach"][0]["group"] == "First connected by"


@pytest.mark.parametrize("causal", [False, True])
def test_the_page_says_why_global_tokens_do_not_connect_all_pairs_with_a_causal_mask(causal):
    variants = (ac.get("softmax"), ac.get("local", window=16), ac.get("bigbird", window=2))
    text = spoken(open_masks(n=60, variants=variants, causal=causal))
    assert ("**BigBird**'s global token is the first token. With a causal mask" in text) == causal


def test_variants_that_connect_all_pairs_as_fast_as_the_stack_are_compared_with_it():
    text = spoken(visit("masks", {}))
    assert (
        "**2 sparse layers connect all tokens: BigBird twice allows 39% of softmax's pairs, Local → Atrous 41%.**"
        in text
    )
    reason = "**BigBird**'s global token alone connects all tokens: it reads all tokens in layer 1, and all tokens "
    assert f"**Local** fills the gaps between them. {reason}" in text


def test_a_stack_of_one_variant_is_not_compared_with_this_variant():
    at = open_masks(n=64, variants=chosen("softmax", "bigbird"), stack=("bigbird", "bigbird"), stack_depth=2)
    assert "BigBird twice" not in spoken(at)
    assert "The stack BigBird → BigBird connects all tokens in 2 layers" in spoken(at)


@pytest.mark.parametrize(("depth", "last"), [(1, 1), (3, 3)])
def test_a_stack_that_never_connects_all_ends_where_it_connects_no_more_or_at_the_chosen_layers(depth, last):
    at = open_masks(n=30, variants=chosen("softmax", "atrous"), stack=("atrous",), stack_depth=depth)
    sent = board_settings(at, "masks.board")
    assert sent["last_frame"] == last
    assert [each["name"] for each in sent["categories"] if each["group"] and each["frame"]] == ["layer 1"]
    assert list(table(at)) == ["1 layer"]


def test_the_slider_ends_at_the_most_layers_if_more_would_connect_further_pairs():
    at = open_masks(n=30, stack=("local",), variants=(ac.get("local", window=1),), stack_depth=2)
    assert board_settings(at, "masks.board")["last_frame"] == current().stack_layers


@pytest.mark.parametrize(("n", "is_shown"), [(1, False), (2, True)])
def test_a_single_token_has_no_table_and_no_chart(n, is_shown):
    at = open_masks(n=n)
    assert bool(at.dataframe) == bool(charts(at)) == is_shown
    assert any("at least two tokens to see" in each.value for each in at.info) != is_shown


@pytest.mark.parametrize(
    ("patterns", "stack", "title"),
    [
        (("local", "atrous", "sparse"), ("local", "atrous", "local"), "Stack: Local → Atrous → Local"),
        (("local", "atrous", "sparse", "bigbird"), ("local", "atrous"), "Stack: Local → Atrous"),
        (("local", "atrous", "sparse", "bigbird"), ("local", "atrous", "local"), "Stack"),
    ],
)
def test_the_stack_comes_last_and_a_long_one_has_a_short_title_among_many_panels(patterns, stack, title):
    # Without the causal mask, two layers connect all 24 tokens if the window is 7.
    variants = (*chosen("softmax", *patterns[1:]), ac.get("local", window=7))
    panels = board(open_masks(variants=variants, stack=stack), "masks.board")[1]
    assert list(panels)[-1] == "reach"
    assert panels["reach"][0]["title"] == title


def test_the_stack_comes_last_on_a_phone_too():
    at = open_masks(variants=chosen("softmax", "local", "atrous"), **{"chart.narrow": True})
    assert list(board(at, "masks.board")[1]) == ["local", "atrous", "reach"]


@pytest.mark.parametrize(("key", "skips"), [("topk", True), ("local", False)])
def test_tokens_that_do_not_attend_to_themselves_are_explained(key, skips):
    at = open_masks(n=40, variants=(ac.get("softmax"), ac.get(key)))
    assert any("(residual connection)" in each.value for each in at.caption) == skips
    assert ("never: no other token reads" in board(at, "masks.board")[1][key][0]["caption"]) == skips


def test_an_empty_address_opens_with_three_patterns_and_a_stack():
    at = visit("masks", {})
    assert [a.key for a in at.session_state["variants"]] == ["softmax", "local", "atrous", "bigbird"]
    assert at.session_state["stack"] == ("local", "atrous")
    assert list(board(at, "masks.board")[1]) == ["local", "atrous", "bigbird", "reach"]
    assert not at.query_params


@pytest.mark.parametrize(("keys", "named"), [(("local", "bigbird"), False), (("local", "topk"), True)])
def test_the_input_is_named_only_if_a_mask_depends_on_queries_and_keys(keys, named):
    at = open_masks(variants=tuple(map(ac.get, keys)), stack=())
    [subtitle] = [c.value for c in at.caption if c.value.endswith("24 tokens](#input)")]
    assert (subtitle == "[24 tokens](#input)") != named
