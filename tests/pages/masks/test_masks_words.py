"""Tests of the Masks page's sentences, with numbers on either side of each threshold."""

import numpy as np
import pytest

import attention_core as ac
from attention_core.analysis.masks import pattern as masks
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from pages.masks.board import connected_after
from pages.masks.hashed_order import sorting_note
from pages.masks.headline import (
    RepeatedVariant,
    blind_hubs,
    causal_hub_sentence,
    compared_layers,
    connected_pairs,
    connection_reason,
    equally_deep_variants,
    fewest_pairs,
    hub_sentence,
    multiples,
    never_connected,
    single_variants,
)
from pages.masks.patterns import caption, cost_note, layers_text, percent, rule_text
from pages.masks.reach import connected_counts, left_out_note, stack_title


def pattern(pairs, *, of=1000, anywhere=0, farthest=3, step=1, diameter=2, primitives=()):
    allowed = np.zeros((1, of), bool)
    allowed[:, : anywhere or round(pairs)] = True
    parts = {name: np.full((1, 1), size) for name, size in dict(primitives).items()}
    return Pattern(
        allowed=allowed, primitives=parts, pairs=pairs, possible=of, farthest=farthest, step=step, diameter=diameter
    )


def test_a_panel_shows_the_share_of_pairs():
    assert caption(pattern(234.0, of=2500), all_heads=False) == "9.4% of pairs"
    assert caption(pattern(1234.0, of=5000), all_heads=True) == "24.7% of pairs"
    pools = pattern(1000.0, primitives={"block": True, "compressed": True})
    assert caption(pools, all_heads=False) == "100.0% of pairs, partly as means"


@pytest.mark.parametrize(
    ("primitives", "step", "words"),
    [
        ({"window": True}, 1, "up to 3 tokens away"),
        ({"window": True, "sink": False}, 1, "up to 3 tokens away"),
        ({"window": True}, 3, "every 3 tokens, up to 3 tokens away"),
        ({"stride": True}, 8, "every 8 tokens"),
        ({"stride": True}, 1, "stride"),
        ({"global": True}, 1, "global token"),
        ({"window": True, "global": True, "random": True}, 1, "window + global + random"),
        ({"column": True, "diagonal": True}, 1, "selected column + selected distance"),
        ({"heavy hitter": True}, 1, "heavy hitter"),
        ({"window": True, "heavy hitter": True}, 1, "last tokens + heavy hitter"),
    ],
)
def test_a_panel_describes_the_rule(primitives, step, words):
    assert rule_text(pattern(5.0, step=step, primitives=primitives)) == words


@pytest.mark.parametrize(
    ("all_heads", "anywhere", "words"),
    [
        (True, 500, "pairs allowed: 25.0% per head on average, 50.0% in at least one head"),
        (True, 251, "pairs allowed: 25.0% per head on average, 25.1% in at least one head"),
        (True, 250, "25.0% of pairs"),
        (False, 500, "25.0% of pairs"),
    ],
)
def test_captions_of_all_heads_have_the_share_in_any_head(all_heads, anywhere, words):
    assert caption(pattern(250.0, anywhere=anywhere), all_heads=all_heads) == words


@pytest.mark.parametrize(
    ("complete", "unread", "words"),
    [
        (None, 0, "never connects all tokens"),
        (None, 1, "never: no other token reads 1 token"),
        (None, 3, "never: no other token reads 3 tokens"),
        (1, 0, "connects all tokens after 1 layer"),
        (7, 0, "connects all tokens after 7 layers"),
    ],
)
def test_a_panel_has_the_number_of_layers_that_connect_all_pairs(complete, unread, words):
    assert layers_text(complete, unread) == words


@pytest.mark.parametrize(
    ("pairs", "complete", "words"),
    [
        ([300.0], None, ""),
        ([300.0], 1, ""),
        (
            [300.0],
            7,
            " Together, the 7 layers allow 2.10 times the pairs of one softmax layer, which alone connects all tokens.",
        ),
        (
            [300.0, 695.1],
            2,
            " Together, the 2 layers allow 1.00 times the pairs of one softmax layer, which alone connects all tokens.",
        ),
        ([300.0, 694.9], 2, " Together, the 2 layers allow 99% of the pairs of one softmax layer."),
        ([300.0, 100.0], 2, " Together, the 2 layers allow 40% of the pairs of one softmax layer."),
        ([300.0, 100.0], 3, " Together, the 3 layers allow 70% of the pairs of one softmax layer."),
    ],
)
def test_the_cost_of_connecting_all_pairs_counts_the_pairs_of_each_layer(pairs, complete, words):
    means = "All tokens are connected when each token can read every other token, directly or through other tokens."
    assert cost_note([pattern(each) for each in pairs], complete) == means + words


@pytest.mark.parametrize(
    ("most", "words"), [(15, "8"), (16, "8 and 16"), (31, "8, 16 and 24"), (32, "8, 16, 24 …"), (200, "8, 16, 24 …")]
)
def test_at_most_three_distances_are_listed(most, words):
    assert multiples(8, most) == words


def test_cross_attention_names_the_sparsest_pattern():
    assert fewest_pairs({"A": 0.3, "B": 0.2, "C": 0.4}) == "**B allows the fewest query–key pairs: 20.0%.**"
    assert fewest_pairs({"A": 0.125}) == "**A allows 12.5% of the query–key pairs.**"
    assert fewest_pairs({}) == ""


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ({}, ""),
        ({"A": 0, "B": 1}, ""),
        (
            {"A": 1, "B": 2},
            "**B** alone never connects all tokens, because information moves only over distances that are multiples "
            "of 2 tokens.",
        ),
    ],
)
def test_strides_that_never_connect_all_pairs_are_named_with_the_reason(steps, words):
    assert never_connected(steps) == words


ALONE = "**All tokens are connected by"
PERCENTAGES = "Percentages: pairs allowed in these layers together (one softmax layer: 100%)."


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([], ""),
        ([(1, 1.0)], f"{ALONE} 1 layer of A (100%).** {PERCENTAGES}"),
        ([(1, None)], f"{ALONE} 1 layer of A (partly as means).**"),
        (
            [(7, 2.01), (2, 0.394), (1, None)],
            f"{ALONE} 1 layer of C (partly as means), 2 layers of B (39%), or 7 layers of A (201%).** {PERCENTAGES}",
        ),
        ([(7, 2.0), (2, 0.4), (3, 0.4), (2, 0.1)], ""),
    ],
)
def test_the_other_variants_are_listed_with_their_layers_and_scores_unless_they_are_many(layers, words):
    assert (
        single_variants(
            {name: RepeatedVariant(layers=n, cost=cost) for name, (n, cost) in zip("ABCD", layers, strict=False)}
        )
        == words
    )


IN_TWO_LAYERS = "all tokens in layer 1, and all tokens read {} in layer 2."


@pytest.mark.parametrize(
    ("hubs", "words"),
    [
        ({}, ""),
        ({"A": 1}, f"**A**'s global token alone connects all tokens: it reads {IN_TWO_LAYERS.format('it')}"),
        ({"A": 2}, f"The global tokens of **A** alone connect all tokens: they read {IN_TWO_LAYERS.format('them')}"),
        (
            {"A": 1, "B": 1},
            f"The global tokens of **A and B** alone connect all tokens: they read {IN_TWO_LAYERS.format('them')}",
        ),
    ],
)
def test_variants_with_global_tokens_are_named(hubs, words):
    assert hub_sentence(hubs) == words


BLIND = "cannot read later tokens and pass on their information, so two layers of"
UNCONNECTED = "alone do not connect all tokens."
FIRST = "are at the beginning of the text. With a causal mask, they"


@pytest.mark.parametrize(
    ("hubs", "words"),
    [
        ({}, ""),
        ({"A": 1}, f"**A**'s global token is the first token. With a causal mask, it {BLIND} A {UNCONNECTED}"),
        ({"A": 2}, f"The global tokens of **A** {FIRST} {BLIND} A {UNCONNECTED}"),
        ({"A": 1, "B": 1}, f"The global tokens of **A and B** {FIRST} {BLIND} A and B {UNCONNECTED}"),
    ],
)
def test_variants_whose_global_tokens_read_no_later_tokens_are_named(hubs, words):
    assert causal_hub_sentence(hubs) == words


@pytest.mark.parametrize("count", [0, 1, 3])
def test_global_tokens_of_a_causal_pattern_are_counted_if_two_layers_are_not_enough(count):
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=12))
    attention = ac.get("bigbird", window=1, global_tokens=count, random_keys=0)
    assert blind_hubs(masks.pattern(qkv, attention, head=0, causal=True)) == count
    assert blind_hubs(masks.pattern(qkv, attention, head=0, causal=False)) == 0
    assert blind_hubs(masks.pattern(qkv, ac.get("local", window=1), head=0, causal=True)) == 0


@pytest.mark.parametrize(
    ("depth", "complete", "layers"), [(2, 2, 2), (3, 2, 2), (1, 2, 1), (2, None, 2), (2, 7, 2), (3, 3, 3)]
)
def test_a_stack_is_compared_after_the_layers_it_needs_or_as_many_as_are_shown(depth, complete, layers):
    assert compared_layers(Reach(first=np.zeros((1, 1)), shares=(0.1, 0.2), complete=complete), depth) == layers


@pytest.mark.parametrize(("layers", "names"), [(1, []), (2, ["B", "A", "E"]), (3, ["D"]), (4, [])])
def test_variants_that_connect_all_tokens_with_fewer_scores_than_softmax_are_listed(layers, names):
    costs = {"A": (2, 0.5), "B": (2, 0.3), "C": (2, 0.996), "D": (3, 0.1), "E": (2, 0.994), "F": (1, None)}
    repeated = {name: RepeatedVariant(layers=number, cost=share) for name, (number, share) in costs.items()}
    assert equally_deep_variants(repeated, layers) == {name: costs[name][1] for name in names}
    assert list(equally_deep_variants(repeated, layers)) == names


@pytest.mark.parametrize(
    ("layers", "words"), [(["A"], "Stack: A"), (["A", "B"], "Stack: A → B"), (["A", "A", "B"], "Stack: A → A → B")]
)
def test_the_title_of_the_stack_differs_from_that_of_a_variant(layers, words):
    assert stack_title(layers) == words


def test_layers_that_cannot_be_causal_are_named_once():
    hidden = [ac.get(key) for key in ("power_bert", "linformer")]
    assert left_out_note(hidden[:1] * 2) == "PoWER-BERT cannot be causal, so it is left out of the stack."
    assert left_out_note(hidden) == "PoWER-BERT and Linformer cannot be causal, so they are left out of the stack."


FEWER = "sparse layers connect all tokens"


@pytest.mark.parametrize(
    ("depth", "complete", "others", "text"),
    [
        (1, 1, {}, "**The stack A → B connects all tokens in 1 layer.**"),
        (
            3,
            2,
            {},
            "**The stack A → B connects all tokens in 2 layers.** Together, the 2 layers allow 40% of the "
            "pairs of one softmax layer.",
        ),
        (2, 2, {"C": 0.39, "D": 0.5}, f"**2 {FEWER}: C twice allows 39% of softmax's pairs, A → B 40%, D twice 50%.**"),
        (
            2,
            2,
            dict.fromkeys("CDE", 0.3),
            f"**2 {FEWER}: C twice allows 30% of softmax's pairs, D twice 30%, E twice 30%, A → B 40%.**",
        ),
        (3, 3, {"C": 0.39}, f"**3 {FEWER}: C allows 39% of softmax's pairs, the stack A → B 40%.**"),
        (2, 2, {"C": 0.401}, f"**2 {FEWER}: A → B allows 40% of softmax's pairs, C twice 40%.**"),
        (
            1,
            2,
            {},
            "**After 1 layer, the stack A → B connects 25.0% of the pairs of tokens.** All tokens are connected after "
            "2 layers.",
        ),
        (
            2,
            7,
            {},
            "**After 2 layers, the stack A → B connects 62.5% of the pairs of tokens.** All tokens are connected after "
            "7 layers.",
        ),
        (2, None, {}, "**After 2 layers, the stack A → B connects 62.5% of the pairs of tokens.**"),
        (
            2,
            None,
            {"C": 0.39},
            f"**2 {FEWER}: C twice allows 39% of softmax's pairs.** "
            "**After 2 layers, the stack A → B connects 62.5% of the pairs of tokens.**",
        ),
    ],
)
def test_a_stack_is_described_by_what_it_connects_and_what_it_costs(depth, complete, others, text):
    reached = Reach(first=np.zeros((1, 1)), shares=(0.1, 0.25, 0.625, 1.0), complete=complete)
    assert connected_pairs(["A", "B"], reached, depth, 0.4, others) == text
    dear = connected_pairs(["A", "B"], reached, 2, 0.996, {"C": 0.39}) if complete == 2 else ""
    assert not dear or dear.startswith(
        f"**2 {FEWER}: C twice allows 39% of softmax's pairs.** **The stack A → B connects all tokens in 2 la"
    )
    if reached.complete == 2 and others:
        assert "A twice" in connected_pairs(["A"], reached, depth, 0.4, others)
        assert ", A → B 40%" in connected_pairs(["A", "B", "C"], reached, depth, 0.4, {"D": 0.39})


@pytest.mark.parametrize(
    ("depth", "complete", "words"),
    [
        (1, 2, "25.0% of pairs connected after 1 layer"),
        (2, 2, "connects all tokens after 2 layers"),
        (3, 2, "connects all tokens after 2 layers"),
        (2, None, "62.5% of pairs connected after 2 layers"),
    ],
)
def test_the_panel_of_the_stack_has_the_connected_share_until_all_pairs_are_connected(depth, complete, words):
    reached = Reach(first=np.zeros((1, 1)), shares=(0.1, 0.25, 0.625, 1.0), complete=complete)
    assert connected_after(reached, depth) == words


@pytest.mark.parametrize(
    ("steps", "complete", "words"),
    [
        ({"A": 0}, None, "The stack never connects all tokens, because each token attends only to itself."),
        (
            {"A": 8, "B": 0},
            None,
            "The stack never connects all tokens, because information moves only over distances that are multiples of "
            "8 tokens.",
        ),
        (
            {"A": 4, "B": 6},
            None,
            "The stack never connects all tokens, because information moves only over distances that are multiples "
            "of 2 tokens.",
        ),
        ({"A": 1, "B": 8}, None, "The stack never connects all tokens."),
        ({"A": 1, "B": 8}, 2, "**B** reads keys 8 tokens away, and **A** fills the gaps between them."),
        (
            {"A": 1, "B": 8},
            3,
            "The stack connects all tokens because **A** also moves information over distances that are not multiples "
            "of 8 tokens.",
        ),
        (
            {"A": 1, "B": 8, "C": 2, "D": 3, "E": 0},
            4,
            "The stack connects all tokens because **A, C and D** also move information over distances that are not "
            "multiples of "
            "8 tokens.",
        ),
        (
            {"A": 1, "B": 8, "C": 2, "D": 3, "E": 0},
            3,
            "The stack connects all tokens because **A and C** also move information over distances that are not "
            "multiples of 8 tokens.",
        ),
        ({"A": 1}, 1, ""),
        ({"A": 1, "B": 8}, 1, ""),
        (
            {"A": 1},
            12,
            "With fewer than 12 layers, the stack cannot connect the first and the last of the 13 tokens, because "
            "information moves at most 1 token per layer.",
        ),
        ({"A": 1}, 2, ""),
        (
            {"A": 1, "B": 1},
            4,
            "With fewer than 4 layers, the stack cannot connect the first and the last of the 13 tokens, because "
            "information moves at most 3 tokens per layer.",
        ),
    ],
)
def test_the_distances_of_the_patterns_explain_what_a_stack_connects(steps, complete, words):
    window = {"step": 1, "farthest": 1 if complete == 12 else 3, "primitives": {"window": True}}
    layers = [(each, pattern(5.0, **window | {"step": step})) for each, step in steps.items()]
    assert connection_reason(layers, complete, n=13) == words


def test_only_windows_need_a_layer_for_each_part_of_the_distance():
    words = []
    for rules in ({"window": True}, {"window": True, "stride": True}):
        words.append(connection_reason([("A", pattern(5.0, farthest=11, primitives=rules))], 2, n=13))
    assert words == [
        "With fewer than 2 layers, the stack cannot connect the first and the last of the 13 tokens, because "
        "information moves at most 11 tokens per layer.",
        "",
    ]


def test_connected_tokens_are_counted_per_layer():
    first = np.array([2, 1, 0, 1, -1])
    assert connected_counts(["A", "B"], "a*b", first, 2, outgoing=True) == (
        r"In the stack A → B, 3 of the 5 tokens can read “a\*b” after 1 layer and 4 after 2."
    )
    assert connected_counts(["A"], "{a}", first, 1, outgoing=False) == (
        "In the stack A, “{a}” can read 3 of the 5 tokens after 1 layer."
    )


ALLOWED = "tokens that the causal mask allows"


@pytest.mark.parametrize(
    ("first", "possible", "words"),
    [
        ([0, 1, 2], None, "2 of the 3 tokens can read “a” after 1 layer and all 3 after 2."),
        ([0, 1, 1], None, "all 3 tokens can read “a” after 1 layer."),
        ([0, 1, -1], None, "2 of the 3 tokens can read “a” after 1 layer and still 2 after 3."),
        ([0, 1, 2, -1], None, "2 of the 4 tokens can read “a” after 1 layer, 3 after 2 and still 3 after 3."),
        ([0, 1, 3, -1], None, "2 of the 4 tokens can read “a” after 1 layer, 2 after 2 and 3 after 3."),
        ([0, *[1] * 1999], None, "all 2,000 tokens can read “a” after 1 layer."),
        ([-1, 0, 1, 2], 3, f"2 of the 3 {ALLOWED} can read “a” after 1 layer and all 3 after 2."),
        ([-1, 0, 1, 1], 3, f"all 3 {ALLOWED} can read “a” after 1 layer."),
    ],
)
def test_connected_tokens_are_counted_until_all_are_connected(first, possible, words):
    found = connected_counts(["A"], "a", np.array(first), 3, outgoing=True, possible=possible)
    assert found == f"In the stack A, {words}"


@pytest.mark.parametrize(("first", "possible"), [([0], None), ([-1, 0], 1)])
def test_a_token_that_is_connected_only_with_itself_is_not_counted(first, possible):
    assert connected_counts(["A"], "a", np.array(first), 3, outgoing=True, possible=possible) == ""


@pytest.mark.parametrize(
    ("missed", "words"),
    [
        (0, "every pair in the same bucket in this hashing round is allowed."),
        (
            1,
            "1 pair shares a bucket in this hashing round, but it is not allowed. No round puts the key into the "
            "query's chunk or the previous chunk.",
        ),
        (
            1234,
            "1,234 pairs share a bucket in this hashing round, but they are not allowed. No round puts the key into "
            "the query's chunk or the previous chunk.",
        ),
    ],
)
def test_missed_pairs_are_counted(missed, words):
    assert f"In head 3, {words}" in sorting_note(missed, head=3, is_sorted=True, causal=False, rounds=2)


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
def test_the_note_on_sorting_explains_only_what_the_board_shows(is_sorted, causal, rounds):
    note = sorting_note(0, head=0, is_sorted=is_sorted, causal=causal, rounds=rounds)
    assert ("both tokens must also be in the same bucket" in note) == causal
    assert ("lie near the diagonal. Lines separate the chunks." in note) == is_sorted
    assert ("Another hashing allows the pairs far from it." in note) == (is_sorted and (causal or rounds == 2))


@pytest.mark.parametrize(
    ("share", "words"), [(1.0, "100%"), (0.999998, "99.99980%"), (0.99996, "99.996%"), (0.9994, "99.9%")]
)
def test_only_all_pairs_are_one_hundred_percent(share, words):
    assert percent(share) == words
