"""The Picture page: what attention over the patches of a noisy image makes of the image, for each chosen variant."""

import streamlit as st

from app.page import Page
from app.ui import export, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.scope import Scope
from app.words.i18n import N_, _
from attention_core.inputs.source import ImageSource
from pages.picture import budget, comparison, numbers, options, words
from pages.picture.comparison import Found
from pages.picture.measures import MEASURES
from pages.picture.options import PictureOptions

FORMULA = (
    r"y_i = \frac{\sum_j e^{-\|p_i - p_j\|^2 / h^2}\, x_j}{\sum_l e^{-\|p_i - p_l\|^2 / h^2}}, \qquad "
    r"q_i = \left[\tfrac{2 p_i}{h^2},\ 1\right],\quad k_j = \left[p_j,\ -\tfrac{\|p_j\|^2}{h^2}\right]"
)


def top() -> Found:
    """Draw the finding, the open settings and the board, and return the images."""
    place = st.container(key="picture.headline")
    variant_picker.show_settings(all_stay=True)
    found = comparison.of()
    titles = {comparison.name(attention): image for attention, image in found.variants.items()}
    place.markdown(words.headline(titles, found.noisy.psnr))
    place.caption(comparison.reasons(found))
    comparison.show(found)
    comparison.explain(found)
    PictureOptions.below.draw()
    return found


def explain(found: Found) -> None:
    """Draw the formula of non-local means, and how attention computes it."""
    st.latex(FORMULA)
    st.markdown(words.definition(found.source.patch, found.source.size**2))
    export.snippet(f"import attention_core as ac\n\nqkv = {found.source.code}.whole()\nprint(qkv.q.shape, qkv.grid)\n")


def header() -> None:
    """Draw the menu of variants and the switch of the square windows."""
    variant_picker.show_menu(_("Variants"))
    PictureOptions.squares.draw(width="content")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the page: all pixels of the whole image, without a mask."""
    source = chosen.source
    assert isinstance(source, ImageSource)
    return Scope(n=source.size**2, tokens=source.size**2, causal=False)


PAGE = Page(
    title=N_("Picture"),
    icon=":material/image:",
    section="Explore",
    rank=3,
    question=N_("What does each attention variant do to an image?"),
    options=PictureOptions,
    opening=options.opening,
    only_input=ImageSource.key,
    header=header,
    has_causal_switch=False,
    runs_as_fragment=True,
    measures=MEASURES,
    scope=scope,
    top=top,
    view=PictureOptions.below,
    views={"explain": explain, "numbers": numbers.show, "budget": budget.show, "download": numbers.show_downloads},
)
