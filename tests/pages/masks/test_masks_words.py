"""Tests of the Masks page's sentences, with numbers on either side of each threshold."""

import numpy as np
import pytest

import attention_core as ac
from app.words.labels import label
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from pages.masks.hashed_order import sorting
from pages.masks.patterns import caption, rule, seen
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
        (2, "information moves only by multiples of 2 tokens."),
    ],
)
def test_a_pattern_that_never_connects_all_pairs_has_a_reason(step, why):
    one = seen(drawn(local=pattern(1.0), sink=pattern(2.0, diameter=5), atrous=pattern(9.0, step=step, diameter=None)))
    assert one == (
        f"**{name('atrous')}** alone never connects all pairs, because {why} To connect all pairs alone, "
        f"**{name('local')}** needs 2 layers and **{name('sink')}** needs 5 layers."
    )
    assert seen(drawn(atrous=pattern(9.0, step=step, diameter=None))).endswith(why)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (
            {"bigbird": pattern(9.0, hub=True)},
            f"**{name('bigbird')}** needs only 2 layers, because all tokens exchange information through a global "
            "token.",
        ),
        (
            {"local": pattern(9.0, diameter=7), "bigbird": pattern(9.0, hub=True), "longformer": pattern(9, hub=True)},
            f"To connect all pairs alone, **{name('local')}** needs 7 layers. **{name('bigbird')} and "
            f"{name('longformer')}** need only 2 layers, because all tokens exchange information through a global "
            "token.",
        ),
        (
            {"bigbird": pattern(9.0, hub=True, diameter=3)},
            f"To connect all pairs alone, **{name('bigbird')}** needs 3 layers.",
        ),
        (
            {"local": pattern(9.0, diameter=7), "bigbird": pattern(9.0), "sink": pattern(9.0, diameter=4)},
            f"To connect all pairs alone, **{name('local')}** needs 7 layers, **{name('bigbird')}** needs 2 layers and "
            f"**{name('sink')}** needs 4 layers.",
        ),
        (
            {"local": pattern(9.0, diameter=7), **dict.fromkeys(("bigbird", "sink", "topk"), pattern(9.0))},
            "Each other variant alone needs 2 to 7 layers to connect all pairs.",
        ),
        (
            dict.fromkeys(("local", "bigbird", "sink", "topk"), pattern(9.0)),
            "Each other variant alone needs 2 layers to connect all pairs.",
        ),
    ],
)
def test_the_other_variants_are_listed_with_their_layers_or_summed_up(others, words):
    told = seen(drawn(atrous=pattern(9.0, step=8, diameter=None), **others))
    assert told.partition(" by multiples of 8 tokens. ")[2] == words


def test_one_token_has_no_pattern_and_two_have():
    assert seen(drawn(local=pattern(1.0, of=1, diameter=1))) == (
        "A single token attends only to itself. Use at least two tokens."
    )
    assert "allows 66.7% of query–key pairs" in seen(drawn(local=pattern(2.0, of=3)))


def test_layers_that_cannot_be_causal_are_named_once():
    hidden = [ac.get(key) for key in ("power_bert", "linformer")]
    assert left_out(hidden[:1] * 2) == "PoWER-BERT cannot be causal, so it is left out of the stack."
    assert left_out(hidden) == "PoWER-BERT and Linformer cannot be causal, so they are left out of the stack."


@pytest.mark.parametrize(
    ("depth", "complete", "words"),
    [
        (1, 1, "**The stack A → B connects all pairs after 1 layer.**"),
        (3, 2, "**The stack A → B connects all pairs after 2 layers.**"),
        (1, 2, "**After 1 layer, the stack A → B connects 25.0% of pairs.** It connects all pairs after 2 layers."),
        (2, 7, "**After 2 layers, the stack A → B connects 62.5% of pairs.** It connects all pairs after 7 layers."),
        (2, None, "**After 2 layers, the stack A → B connects 62.5% of pairs.**"),
    ],
)
def test_a_stack_is_told_by_what_it_connects_and_what_it_takes(depth, complete, words):
    reached = Reach(first=np.zeros((1, 1)), shares=(0.1, 0.25, 0.625, 1.0), complete=complete)
    assert connected(["A", "B"], reached, depth) == words


@pytest.mark.parametrize(
    ("steps", "complete", "words"),
    [
        ({"A": 0}, None, "It never connects all pairs, because each token attends only to itself."),
        (
            {"A": 8, "B": 0},
            None,
            "It never connects all pairs, because information moves only by multiples of 8 tokens.",
        ),
        (
            {"A": 4, "B": 6},
            None,
            "It never connects all pairs, because information moves only by multiples of 2 tokens.",
        ),
        (
            {"A": 1, "B": 8},
            None,
            "It never connects all pairs, however often the stack is repeated, because information never leaves some "
            "groups of tokens.",
        ),
        ({"A": 1, "B": 8}, 2, "**A** covers the distances between **B**'s steps of 8 tokens."),
        (
            {"A": 1, "B": 8},
            3,
            "This works because **A** also moves information over distances that are not multiples of 8 tokens.",
        ),
        (
            {"A": 1, "B": 8, "C": 2, "D": 3, "E": 0},
            2,
            "This works because **A, C and D** also move information over distances that are not multiples of 8 "
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


@pytest.mark.parametrize(("share", "words"), [(1.0, "100.0%"), (0.99996, "99.996%"), (0.9994, "99.9%")])
def test_only_all_pairs_are_called_all(share, words):
    assert percent(share) == words
