"""Home: what this is, and what can be compared."""

import streamlit as st

from app import contents, gallery
from app.text import _

gallery.use_link()
st.title("Attention Lab", anchor=False)
st.markdown(
    _(
        "See and measure attention mechanisms side by side: softmax, linear, sparse and low-rank variants on the very "
        "same queries, keys and values, from your own text through a real trained model. Every number and every "
        "picture on these pages is computed from the input you chose."
    )
)
contents.show()
st.subheader(_("What can be compared"))
st.caption(_("Each card shows the variant's matrix on the same 32 tokens: rows are queries, columns are keys."))
gallery.show()
