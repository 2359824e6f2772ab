"""The gallery on the Home page: every variant that exists, as a card."""

import streamlit as st

import attention_core as ac
from app import about, compute, navigation
from app.compute import View
from app.controls import Options, pills
from app.figures.picture import picture
from app.naming import family_title
from app.text import N_, _
from app.visit import read_variants
from attention_core.inputs.source import SyntheticSource
from attention_core.inputs.synthetic import SyntheticSpec

SAMPLE = SyntheticSource(SyntheticSpec(n=32, heads=1))


def _families() -> dict[str, str]:
    present = {variant.family for variant in ac.all_variants()}
    return {"all": _("All"), **{family: family_title(family) for family in ac.families() if family in present}}


class HomeOptions(Options):
    """What a link to this page carries beside what all pages share."""

    family = pills(_families, N_("Family"))


def show() -> None:
    """Draw the family filter and one card per variant, each with its matrix on the same small input."""
    family = HomeOptions.family.draw()
    with st.grid("auto", min_column_width=260, row_height="content", key="gallery"):
        for variant in ac.all_variants():
            if family in ("all", variant.family):
                with st.container(border=True, height="stretch"):
                    _card(variant)


def _card(variant: ac.Variant) -> None:
    st.markdown(f"**{_(variant.title)}**  :gray-badge[{family_title(variant.family)}]")
    view = View(source=SAMPLE, head=0, causal=False, special=True)
    found = compute.matrix(view, ac.get(variant.key))
    st.image(picture(found.weights, dark=st.context.theme.type == "dark"), width="stretch")
    st.markdown(_(variant.summary))
    st.latex(variant.formula)
    st.caption(
        _(
            "time {complexity} · causal: {causal}",
            complexity=_(variant.complexity),
            causal=_("no") if variant.causal_reason else _("yes"),
        )
    )
    pair = list(dict.fromkeys(("softmax", variant.key)))
    navigation.link(
        "matrices", _("Compare it with softmax"), icon=":material/arrow_forward:", variants=read_variants(pair)
    )
    about.link_inside(ac.get(variant.key))
