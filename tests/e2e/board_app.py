"""An app for browser tests that serves the test page ``board_page.py`` and the script that draws boards of matrices."""

import streamlit as st
from starlette.middleware import Middleware

from app.server.first_paint import PageFiles

app = st.App("board_page.py", middleware=[Middleware(PageFiles)])
