"""Tests of the Masks page's sentences, with numbers on either side of each threshold."""

import numpy as np
import pytest

import attention_core as ac
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from pages.masks.hashed_order import sorting
from pages.masks.patterns import caption, cost, multiples, rule, seen
from pages.masks.reach import connected, connected_counts, left_out, percent, reason


def pattern(pairs, *, of=1000, anywhere=0, farthest=3, step=1, diameter=2, primitives=(), hub=False):
    allowed = np.zeros((1, of), bool)
    allowed[:, : anywhere or round(pairs)] = True
    if hub:
        allowed = np.eye(3, dtype=bool)
        allowed[1] = allowed[:, 1] = True
    parts = {name: np.full((1, 1), size) for name, size in dict(primitives).items()}
    return Pattern(
        allowed=allowed, primitives=parts, pairs=pairs, possible=of, farthest=farthest, step=step, diameter=diameter
    )


def name(key):
    return label(ac.get(key))


def drawn(**patterns):
    return {ac.get(key): found for key, found in patterns.items()}


def test_a_panel_tells_the_share_and_the_number_of_pairs():
    assert caption(pattern(234.0, of=2500), every_head=False) == "9.4% of pairs (234)"
    assert caption(pattern(1234.0, of=5000), every_head=True) == "24.7% of pairs (1,234)"


@pytest.mark.parametrize(
    ("primitives", "step", "words"),
    [
        ({"window": True}, 1, "up to 3 tokens away"),
        ({"window": True, "sink": False}, 1, "up to 3 tokens away"),
        ({"stride": True}, 8, "every 8 tokens"),
        ({"stride": True}, 1, "stride"),
        ({"window": True, "global": True, "random": True}, 1, "window + global token + random keys"),
        ({"column": True, "diagonal": True}, 1, "selected column + selected distance"),
        ({"heavy hitter": True}, 1, "heavy hitter"),
    ],
)
def test_a_panel_names_the_rule_in_words(primitives, step, words):
    assert rule(pattern(5.0, step=step, primitives=primitives)) == words


@pytest.mark.parametrize(
    ("every_head", "anywhere", "words"),
    [
        (True, 500, "25.0% of pairs per head, 50.0% in at least one head"),
        (True, 251, "25.0% of pairs per head, 25.1% in at least one head"),
        (True, 250, "25.0% of pairs (250)"),
        (False, 500, "25.0% of pairs (250)"),
    ],
)
def test_heads_that_differ_are_told_apart_where_all_are_looked_at(every_head, anywhere, words):
    assert caption(pattern(250.0, anywhere=anywhere), every_head=every_head) == words


@pytest.mark.parametrize(
    ("pairs", "complete", "words"),
    [
        ([300.0], None, "never connects all pairs"),
        ([300.0], 1, "1 layer connects all pairs: 30% (300)"),
        ([300.0], 7, "7 layers connect all pairs: 210% (2,100)"),
        ([300.0, 100.0], 2, "2 layers connect all pairs: 40% (400)"),
        ([300.0, 100.0], 3, "3 layers connect all pairs: 70% (700)"),
    ],
)
def test_the_cost_of_connecting_all_pairs_counts_the_pairs_of_each_layer(pairs, complete, words):
    assert cost([pattern(each) for each in pairs], complete) == words


@pytest.mark.parametrize(
    ("most", "words"), [(15, "8"), (16, "8 and 16"), (31, "8, 16 and 24"), (32, "8, 16, 24 …"), (200, "8, 16, 24 …")]
)
def test_at_most_three_distances_are_listed(most, words):
    assert multiples(8, most) == words


@pytest.mark.parametrize("order", [1, -1])
def test_the_sparsest_pattern_is_named(order):
    given = {"local": pattern(300.0, diameter=5), "atrous": pattern(200.0, diameter=3), "sparse": pattern(400.0)}
    assert seen(drawn(**dict(list(given.items())[::order]))) == (
        f"**{name('atrous')}** allows the fewest query–key pairs: 20.0%."
    )


def test_a_pattern_alone_is_not_called_the_sparsest():
    assert seen(drawn(local=pattern(125.0, diameter=4))) == "**Local · window 16** allows 12.5% of query–key pairs."


def test_patterns_that_never_connect_all_pairs_are_named():
    both = seen(drawn(local=pattern(1.0, diameter=None), atrous=pattern(9.0, diameter=None)))
    assert both == (
        f"If all layers use the same variant, **{name('local')} and {name('atrous')}** never connect all pairs. "
        "Information never leaves some groups of tokens."
    )
    assert "never" not in seen(drawn(local=pattern(1.0, diameter=1)))


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (0, "each token attends only to itself."),
        (1, "information never leaves some groups of tokens."),
        (2, "it reaches only distances that are multiples of 2 tokens."),
    ],
)
def test_a_pattern_that_never_connects_all_pairs_has_a_reason(step, why):
    one = seen(drawn(local=pattern(1.0), sink=pattern(2.0, diameter=5), atrous=pattern(9.0, step=step, diameter=None)))
    assert one == (
        f"**{name('atrous')}** alone never connects all pairs, because {why} To connect all pairs alone, "
        f"**{name('local')}** needs 2 layers (0%) and **{name('sink')}** needs 5 layers (1%). In brackets: allowed "
        f"pairs, compared with one softmax layer."
    )
    assert seen(drawn(atrous=pattern(9.0, step=step, diameter=None))).endswith(why)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (
            {"bigbird": pattern(9.0, hub=True)},
            f"To connect all pairs alone, **{name('bigbird')}** needs 2 layers with its global token (2%). In "
            f"brackets: allowed pairs, compared with one softmax layer.",
        ),
        (
            {"local": pattern(90, diameter=7), "bigbird": pattern(9.0, hub=True), "longformer": pattern(20, hub=True)},
            f"To connect all pairs alone, **{name('local')}** needs 7 layers (63%), **{name('bigbird')}** needs 2 "
            f"layers with its global token (2%) and **{name('longformer')}** needs 2 layers with its global token "
            "(4%). In brackets: allowed pairs, compared with one softmax layer.",
        ),
        (
            {"bigbird": pattern(9.0, hub=True, diameter=3)},
            f"To connect all pairs alone, **{name('bigbird')}** needs 3 layers (3%). In brackets: allowed pairs, "
            "compared with one softmax layer.",
        ),
        (
            {"local": pattern(300, diameter=7), "bigbird": pattern(9.0), "sink": pattern(9.0, diameter=4)},
            f"To connect all pairs alone, **{name('local')}** needs 7 layers (210%), **{name('bigbird')}** needs 2 "
            f"layers (2%) and **{name('sink')}** needs 4 layers (4%). In brackets: allowed pairs, compared with one "
            f"softmax layer.",
        ),
        (
            {"local": pattern(9.0, diameter=7), **dict.fromkeys(("bigbird", "sink", "topk"), pattern(9.0))},
            "Each of the other variants alone needs 2 to 7 layers to connect all pairs.",
        ),
        (
            dict.fromkeys(("local", "bigbird", "sink", "topk"), pattern(9.0)),
            "Each of the other variants alone needs 2 layers to connect all pairs.",
        ),
    ],
)
def test_the_other_variants_are_listed_with_their_layers_or_summed_up(others, words):
    text = seen(drawn(atrous=pattern(9.0, step=8, diameter=None), **others))
    assert text.partition(" multiples of 8 tokens. ")[2] == words


def test_one_token_has_no_pattern_and_two_have():
    assert seen(drawn(local=pattern(1.0, of=1, diameter=1))) == (
        "A single token attends only to itself. Use at least two tokens."
    )
    assert "allows 66.7% of query–key pairs" in seen(drawn(local=pattern(2.0, of=3)))


def test_layers_that_cannot_be_causal_are_named_once():
    hidden = [ac.get(key) for key in ("power_bert", "linformer")]
    assert left_out(hidden[:1] * 2) == "PoWER-BERT cannot be causal, so it is left out of the stack."
    assert left_out(hidden) == "PoWER-BERT and Linformer cannot be causal, so they are left out of the stack."


PAIRS = "of one softmax layer's pairs"


@pytest.mark.parametrize(
    ("depth", "complete", "words"),
    [
        (1, 1, f"**The stack A → B connects all pairs after 1 layer, at 30% {PAIRS}.**"),
        (3, 2, f"**The stack A → B connects all pairs after 2 layers, at 40% {PAIRS}.**"),
        (
            1,
            2,
            "**After 1 layer, the stack A → B connects 25.0% of pairs.** The stack connects all pairs after 2 layers, "
            "at "
            f"40% {PAIRS}.",
        ),
        (
            2,
            7,
            "**After 2 layers, the stack A → B connects 62.5% of pairs.** The stack connects all pairs after 7 "
            "layers, at "
            f"150% {PAIRS}.",
        ),
        (2, None, "**After 2 layers, the stack A → B connects 62.5% of pairs.**"),
    ],
)
def test_a_stack_is_told_by_what_it_connects_and_what_it_takes(depth, complete, words):
    reached = Reach(first=np.zeros((1, 1)), shares=(0.1, 0.25, 0.625, 1.0), complete=complete)
    assert connected(["A", "B"], reached, depth, [pattern(300.0), pattern(100.0)]) == words


@pytest.mark.parametrize(
    ("steps", "complete", "words"),
    [
        ({"A": 0}, None, "The stack never connects all pairs, because each token attends only to itself."),
        (
            {"A": 8, "B": 0},
            None,
            "The stack never connects all pairs, because information moves only over distances that are multiples of 8 "
            "tokens.",
        ),
        (
            {"A": 4, "B": 6},
            None,
            "The stack never connects all pairs, because information moves only over distances that are multiples of 2 "
            "tokens.",
        ),
        (
            {"A": 1, "B": 8},
            None,
            "The stack never connects all pairs, however often it is repeated, because information never leaves some "
            "groups of tokens.",
        ),
        ({"A": 1, "B": 8}, 2, "**B** reaches keys 8 tokens away, and **A** adds the distances in between."),
        (
            {"A": 1, "B": 8},
            3,
            "The stack connects all pairs because **A** also moves information over distances that are not multiples "
            "of 8 tokens.",
        ),
        (
            {"A": 1, "B": 8, "C": 2, "D": 3, "E": 0},
            2,
            "The stack connects all pairs because **A, C and D** also move information over distances that are not "
            "multiples of 8 "
            "tokens.",
        ),
        ({"A": 1}, 1, ""),
        ({"A": 1}, 2, ""),
        (
            {"A": 1, "B": 1},
            4,
            "Fewer layers cannot connect the first and the last of the 13 tokens, because information moves at most 3 "
            "tokens per layer.",
        ),
    ],
)
def test_the_distances_of_the_patterns_explain_what_a_stack_connects(steps, complete, words):
    layers = [(each, pattern(5.0, step=step, farthest=3)) for each, step in steps.items()]
    assert reason(layers, complete, n=13) == words


def test_a_window_names_the_distances_that_it_adds_to_those_of_a_stride():
    layers = [("A", pattern(5.0, primitives={"window": True}, farthest=7)), ("B", pattern(5.0, step=8))]
    assert reason(layers, 2, n=106) == (
        "**B** reaches keys 8, 16, 24 … tokens away, and **A** adds the distances from 0 to 7."
    )


def test_a_front_counts_layer_by_layer_what_is_connected():
    first = np.array([2, 1, 0, 1, -1])
    assert connected_counts("a*b", first, 2, heard=True) == (
        r"Number of tokens that “a\*b” reaches after 0, 1, … layers: 1, 3 and 4 of 5."
    )
    assert connected_counts("{a}", first, 1, heard=False) == (
        "Number of tokens that reach “{a}” after 0, 1, … layers: 1 and 3 of 5."
    )


@pytest.mark.parametrize(
    ("missed", "words"),
    [
        (0, "every pair in the same bucket in this hashing round is allowed."),
        (1, "1 pair shares a bucket in this hashing round, but no round allows this pair."),
        (1234, "1,234 pairs share a bucket in this hashing round, but no round allows these pairs."),
    ],
)
def test_what_no_round_lets_look_is_counted(missed, words):
    assert f"In head 3, {words}" in sorting(missed, head=3)


@pytest.mark.parametrize(("share", "words"), [(1.0, "100%"), (0.99996, "99.996%"), (0.9994, "99.9%")])
def test_only_all_pairs_are_called_all(share, words):
    assert percent(share) == words
