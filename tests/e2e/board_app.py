"""The server of ``board_page.py``, which also serves the script of the boards."""

import streamlit as st
from starlette.middleware import Middleware

from app.server.first_paint import ScriptFiles

app = st.App("board_page.py", middleware=[Middleware(ScriptFiles)])
