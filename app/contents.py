"""What there is to do: every page with the question it answers."""

import streamlit as st

from app import navigation
from app.page import SECTIONS, discover
from app.text import _


def show() -> None:
    """Draw the pages section by section; the input and the variants go along."""
    with st.container(key="contents"):
        for column, section in zip(st.columns(len(SECTIONS)), SECTIONS, strict=True):
            with column.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{_(section)}**")
                for key, page in discover().items():
                    if page.section == section:
                        navigation.link(key, f"**{_(page.title)}** · {_(page.question)}")
