"""The family tree on the Home page: which attention variants are special cases of others, and at which settings."""

import html
from collections.abc import Mapping

import streamlit as st

import attention_core as ac
from app.state.controls import Options
from app.state.session import REFERENCE
from app.ui.matrix_picture import SAMPLE
from app.words.i18n import N_, _, enumeration, paragraph
from app.words.labels import setting_name
from attention_core import family_tree
from attention_core.family_tree import Branch, Edge
from attention_core.formatting import format_readable
from attention_core.variant import TOKENS, Value
from pages.home.gallery import page_link

TOKEN_COUNT = SAMPLE.spec.n
BRANCHES = {
    "gate_compressed": N_("only the compressed branch"),
    "gate_selected": N_("only the selected branch"),
    "gate_window": N_("only the window branch"),
}
"""Names of the settings in which only one of a variant's branches has weight, by the gate of this branch."""


def show() -> None:
    """Draw every tree, the largest first."""
    all_trees = family_tree.trees()
    text = paragraph(
        _(
            "{n} of the {count} variants contain another variant as a special case, or are one.",
            n=len({name for tree in all_trees for name in names(tree)}),
            count=len(ac.all_variants()),
        ),
        _(
            "Each variant becomes the variant one level above it if you choose the settings shown (n: number of "
            "tokens). Choose a name to compare both variants."
        ),
    )
    roots = "".join(map(tree_html, all_trees))
    with st.container(key="family-tree"):
        st.markdown(f":small[{text}]\n\n{roots}", unsafe_allow_html=True)


def names(tree: Branch) -> set[str]:
    """Return the keys of the variants in a tree."""
    return {tree.variant.key}.union(*map(names, tree.branches))


def tree_html(tree: Branch) -> str:
    """Return a tree of variants as nested HTML lists."""
    return f"<p><strong>{html.escape(_(tree.variant.title))}</strong></p>{_branches(tree)}"


def _branches(tree: Branch) -> str:
    lines = (
        f"<li><span>{edge_html(each.edge)}</span>{_branches(each)}</li>"
        for each in tree.branches
        if each.edge is not None
    )
    return f"<ul>{''.join(lines)}</ul>" if tree.branches else ""


def edge_html(edge: Edge) -> str:
    """Return the HTML of a variant in the tree.

    It has the variant's name as a link, and the settings at which it equals its parent.
    """
    return f"{_comparison_link(edge)} <small>{html.escape(conditions(edge))}</small>"


def conditions(edge: Edge) -> str:
    """Return the settings at which a variant equals its special case, such as ``window = n, causal``."""
    general, special = edge.case.settings, edge.case.other
    both = [name for name in general if name in special and general[name] == special[name]]
    parts = []
    if branch := _only_branch(general):
        parts, general = [branch], {name: value for name, value in general.items() if name not in BRANCHES}
    parts += [
        _("{setting} = {value} in both variants", setting=setting_name(name), value=_text(general[name]))
        for name in both
    ]
    parts += [
        _("{setting} = {value}", setting=setting_name(n), value=_text(v)) for n, v in general.items() if n not in both
    ]
    parts += [
        _("{setting} = {value} in the parent", setting=setting_name(n), value=_text(v))
        for n, v in special.items()
        if n not in both
    ]
    if edge.case.shared:
        parts.append(_("same {setting} in both variants", setting=enumeration(map(setting_name, edge.case.shared))))
    if edge.case.causal is not None:
        parts.append(_("causal") if edge.case.causal else _("not causal"))
    return enumeration(parts)


def _only_branch(settings: Mapping[str, Value]) -> str:
    """Return the name of the only branch whose gate is 1, if the gates of the other branches are 0; else ""."""
    gates = {settings.get(name): text for name, text in BRANCHES.items()}
    return _(gates[1.0]) if sorted(settings.get(name, -1) for name in BRANCHES) == [0.0, 0.0, 1.0] else ""


def _text(value: Value) -> str:
    if value == TOKENS:
        return "n"
    return setting_name(str(value)) if isinstance(value, str | bool) else format_readable(value, None)


def _comparison_link(edge: Edge) -> str:
    """Return an HTML link to the Matrices page that shows both variants on the gallery's input."""
    changes = {
        "input": SAMPLE.key,
        "n": TOKEN_COUNT,
        "heads": SAMPLE.spec.heads,
        "causal": not edge.holds(causal=False),
    }
    fields = Options.shared()
    query = {name: fields[name].write(value) for name, value in changes.items() if value != fields[name].default}
    general, special = edge.attentions(TOKEN_COUNT)
    shown = list(dict.fromkeys((REFERENCE, special.word, general.word)))
    return page_link("matrices", {**query, "variants": shown}, f"<strong>{html.escape(_(edge.general.title))}</strong>")
