"""What there is to do: every page with the question it answers."""

from itertools import groupby

import streamlit as st

from app import share
from app.navigation import entries


def show() -> None:
    """Draw the pages section by section; the input and the variants go along."""
    asking = [entry for entry in entries() if entry.question]
    link = share.link_of(st.session_state, share.shared())
    sections = [(section, list(members)) for section, members in groupby(asking, key=lambda entry: entry.section)]
    with st.container(key="contents"):
        for column, (section, members) in zip(st.columns(len(sections)), sections, strict=True):
            with column.container(border=True, height="stretch", gap="xsmall"):
                st.markdown(f"**{section}**")
                for entry in members:
                    label = f"**{entry.title}** · {entry.question}"
                    st.page_link(f"../pages/{entry.file}", label=label, icon=entry.icon, query_params=link)
