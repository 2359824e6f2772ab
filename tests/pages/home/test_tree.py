"""Tests of Home's family tree: each edge with its settings, the computed difference, and a link to both variants."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from driver import open_page, visit

import attention_core as ac
from attention_core import family_tree
from attention_core.variant import SpecialCase
from pages.home import tree

EDGES = tuple(edge for variant in ac.all_variants() for edge in family_tree.edges(variant)[:1])


@pytest.fixture(scope="module")
def tree_html():
    [found] = [each.value for each in open_page("home", shown="tree").markdown if "<p><strong>" in each.value]
    return found


def test_every_edge_to_a_parent_has_its_settings_and_a_link_to_both(tree_html):
    links = re.findall(r'href="matrices\?([^"]*)"', tree_html)
    shown = [parse_qs(link.replace("&amp;", "&"))["variants"] for link in links]
    both = [[special.word, general.word] for general, special in (edge.attentions(32) for edge in EDGES)]
    assert sorted(shown) == sorted(words if "softmax" in words else ["softmax", *words] for words in both)
    for edge in EDGES:
        assert tree.conditions(edge).replace("&", "&amp;") in tree_html


def test_every_variant_of_a_tree_is_counted():
    keys = set().union(*map(tree.names, family_tree.trees()))
    assert keys == {each.key for edge in EDGES for each in (edge.general, edge.special)}


def test_the_html_is_nested_like_the_tree(tree_html):
    under_local = tree_html[tree_html.index("<strong>Local</strong>") :]
    assert under_local.index("<ul>") < under_local.index("<strong>Longformer</strong>") < under_local.index("</ul>")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SpecialCase("softmax", {"window": "n"}), "window = n"),
        (
            SpecialCase("longformer", {"random_keys": 0}, {"dilation": 1}),
            "random keys = 0 and dilation = 1 in the parent",
        ),
        (SpecialCase("gla", {"gate": "constant"}, {"gate": "constant"}), "gate = constant in both variants"),
        (SpecialCase("gla", {"gate": "keys"}, {"gate": "constant"}), "gate = keys and gate = constant in the parent"),
        (SpecialCase("linear", {"decay": 1.0}, shared=("mode",)), "decay = 1 and same mode in both variants"),
        (
            SpecialCase("gla", {"decay": 1.0}, shared=("window", "block")),
            "decay = 1 and same window and block in both variants",
        ),
        (
            SpecialCase("local", {"gate_compressed": 0.0, "gate_selected": 0.0, "gate_window": 1.0, "window": 17}),
            "only the window branch and window = 17",
        ),
        (
            SpecialCase("local", {"gate_compressed": 1.0, "gate_selected": 0.0, "gate_window": 1.0}),
            "gate compressed = 1, gate selected = 0 and gate window = 1",
        ),
        (SpecialCase("linear", {"decay": 0.9}, causal=True), "decay = 0.9 and causal"),
        (SpecialCase("linear", {"decay": 1.0}, causal=False), "decay = 1 and not causal"),
    ],
)
def test_the_conditions_of_an_edge_are_shown_as_text(case, expected):
    assert tree.conditions(family_tree.Edge(ac.variant("bigbird"), ac.variant(case.key), case)) == expected


def test_an_edge_links_to_both_variants(tree_html):
    link = next(link for link in re.findall(r'href="([^"]*)"', tree_html) if "bigbird" in link and "longformer" in link)
    at = visit("matrices", parse_qs(urlsplit(link.replace("&amp;", "&")).query))
    assert not at.warning
    assert [each.key for each in at.session_state["variants"]] == ["softmax", "longformer", "bigbird"]
