"""The gallery on the Home page: all attention variants by family. Only the rows of open families are drawn."""

import html
from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

import attention_core as ac
from app.state import url
from app.state.controls import Options
from app.state.session import REFERENCE, SharedOptions, opens_causal
from app.ui.lazy import lazy_expander, to_css_name
from app.ui.matrix_picture import matrix_picture
from app.words.i18n import _
from app.words.labels import complexity_letters, family_summary, family_title
from pages.home.options import HomeOptions


def show() -> None:
    """Draw one expander per family, with a row for each of its variants."""
    text = _(
        "Open a family to see each variant's attention matrix, formula and time complexity. All matrices are for the "
        "same 32 random tokens. Rows are queries, and columns are keys."
    )
    st.markdown(f":small[{text}]")
    open_families = HomeOptions.family.value
    st.html(_previews(dark=st.context.theme.type == "dark"))
    with st.container(key="gallery", gap="xsmall"):
        for family in ac.families():
            members = [each for each in ac.all_variants() if each.family == family]
            key = url.sync_widget(_name(family), family in open_families)
            title = _(
                "**{family}** ({n}) · {line}", family=family_title(family), n=len(members), line=family_summary(family)
            )
            lazy_expander(title, partial(_rows, family, members), key=key, on_change=partial(_toggle, key, family))


def _name(family: str) -> str:
    return f"home.family.{family}"


def _previews(*, dark: bool) -> str:
    """Return a style sheet that shows the first matrices of each family. It is one element of the page."""
    rules = []
    for family in ac.families():
        members = [each for each in ac.all_variants() if each.family == family][:4]
        pictures = ", ".join(f"url({matrix_picture(each.key, dark=dark)})" for each in members)
        rules.append(f".st-key-{to_css_name(_name(family))} {{ --matrices: {pictures}; }}")
    return f"<style>{' '.join(rules)}</style>"


def _toggle(key: str, family: str) -> None:
    """Store that a family was opened or closed, so that a link to the page contains it."""
    open_families = {*HomeOptions.family.value} - {family} | ({family} if st.session_state[key] else set())
    HomeOptions.family.set([each for each in ac.families() if each in open_families])


def _rows(family: str, variants: Sequence[ac.Variant]) -> None:
    """Draw the letters of a family's time complexities, and one row per variant with its matrix."""
    query = url.to_query(url.values(), Options.shared())
    dark = st.context.theme.type == "dark"
    rows = [row(each, query, dark=dark) for each in variants]
    st.markdown(f":small[{complexity_letters(family)}]")
    st.markdown("\n\n".join(['<div class="family">', *rows, "</div>"]), unsafe_allow_html=True)


def row(variant: ac.Variant, query: Mapping[str, list[str]], *, dark: bool) -> str:
    """Return a variant's row as Markdown. A click on its name expands its summary and formula.

    Links to other pages carry the parameters of ``query``.
    """
    alt = _("{name}: attention matrix on the same 32 tokens", name=_(variant.title))
    costs = _(
        "time O({complexity}) · {causal}",
        complexity=_(variant.complexity),
        causal=_("cannot be causal") if variant.causal_reason else _("can be causal"),
    )
    compare_query = {**query, "variants": list(dict.fromkeys((REFERENCE, variant.key)))}
    links = [page_link("matrices", compare_query, f":material/arrow_forward: {_('Compare it with softmax')}")]
    if variant.anatomy:
        causal = {"causal": ["1"]} if opens_causal(variant) else {}
        step_query = {**query, "inside": [ac.get(variant.key).word], "step": ["0"], **causal}
        links.append(page_link("inside", step_query, f":material/biotech: {_('See it step by step')}"))
    parts = (
        '<div class="variant">',
        f'<div class="matrix" role="img" aria-label="{html.escape(alt)}" style="background-image:url('
        f'{matrix_picture(variant.key, dark=dark)})"></div>',
        f"<details><summary>{html.escape(_(variant.title))}</summary>",
        _(variant.summary),
        f"$$\n{variant.formula}\n$$",
        "</details>",
        f'<p class="costs">{html.escape(costs)}</p>',
        " ".join(links),
        "</div>",
    )
    return "\n\n".join(parts)


def page_link(page: str, query: Mapping[str, list[str]], label: str) -> str:
    """Return an HTML link to a page. A script of the app follows it without starting a new session."""
    ordered = {name: query[name] for name in dict.fromkeys((*SharedOptions.controls, *query)) if name in query}
    address = html.escape(page + url.query_string(ordered))
    return f'<a class="way" target="_self" href="{address}">{label}</a>'
