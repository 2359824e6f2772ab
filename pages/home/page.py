"""Home: what this is, and what can be compared."""

import streamlit as st

from app import contents, gallery
from app.controls import Options
from app.page import Page
from app.share import Field
from app.text import N_, _


class HomeOptions(Options):
    """What a link to this page carries beside what all pages share."""

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries."""
        return gallery.fields()


def top() -> None:
    """What this is, and every page."""
    st.title("Attention Lab", anchor=False)
    st.markdown(
        _(
            "See and measure attention mechanisms side by side: softmax, linear, sparse and low-rank variants on the "
            "very same queries, keys and values, from your own text through a real trained model. Every number and "
            "every picture on these pages is computed from the input you chose."
        )
    )
    contents.show()


def show(given: None) -> None:
    """Every variant there is."""
    st.subheader(_("What can be compared"))
    st.caption(_("Each card shows the variant's matrix on the same 32 tokens: rows are queries, columns are keys."))
    gallery.show()


PAGE = Page(
    title=N_("Home"), icon=":material/home:", options=HomeOptions, uses_input=False, top=top, views={"gallery": show}
)
