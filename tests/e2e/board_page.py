"""A Streamlit page with a board of matrices, for browser tests; query parameters select the matrices and settings."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import streamlit as st

from app.matrix_board import Knob, Panel, matrix_board, shades, thumbnail_board
from app.page_script import mounting

st.set_page_config(layout="wide")
query, state = st.query_params, st.session_state
n, count, case = int(query.get("n", 12)), int(query.get("count", 2)), query.get("case", "")
state.setdefault("pin", None)
state.setdefault("chosen", (1, 2))
if st.button("other values"):
    state.version = state.get("version", 0) + 1
if st.button("pin 3"):
    state.pin = 3
rows, cols = np.mgrid[:n, :n]
values = [((rows * 31 + cols * 17 + 7 * i + state.get("version", 0)) % 97 + 1) / 1000 for i in range(count)]
if case == "peak":
    values = [np.where((rows == 300) & (cols == 77) & (i == 1), 1.0, 1e-3) for i in range(count)]
if case == "causal":
    values = [np.where(cols > rows, np.nan, v * (-1) ** i) for i, v in enumerate(values)]
tokens = [f"t{i}" for i in range(n)]
title = "Panel {}"
if case == "hostile":
    tokens[:2] = ['<img src=x onerror="window.hit=1">', "a\u202eb\x01\n"]
    title = "<script>window.hit=1</script> {}"
panels = [Panel(f"p{i}", title.format(i), "a & b", v) for i, v in enumerate(values)]
if case == "odd":
    odd = [np.ones((1, 1)), np.zeros((3, 3)), np.full((2, 2), np.nan), np.full((2, 2), 1e-9)]
    odd += [np.ones((3, 40)), -np.ones((40, 1))]
    panels = [Panel(str(i), str(v.shape), "", v) for i, v in enumerate(odd)]
if case == "narrow":
    panels.append(Panel("wide", "Wide", "", np.ones((n, 5)), col_labels=list("abcde")))
if case == "knob":
    panels[1] = replace(panels[1], knob=Knob("window", list(range(21)), state.get("turned", 5)))


def turn(key, value):
    time.sleep(0.5)
    state.update(turned=value, turns=state.get("turns", 0) + 1)


if st.checkbox("shown", value=True):
    matrix_board(
        panels,
        labels=None if case == "odd" else tokens,
        key="board",
        pinned=state.pin,
        on_pin=lambda row: state.update(pin=row),
        on_turn=turn,
        ceiling=float(query.get("ceiling", 0)),
        above_ceiling="above 0.05 (up to {most})",
        scale=query.get("scale", "shared"),
        transform=query.get("transform", "linear"),
        file_name="two panels",
    )
st.text(f"pinned {state.pin}")
st.text(f"turned to {state.get('turned')} in {state.get('turns')}")
if case == "heads":
    thumbnail_board(
        shades(np.random.default_rng(0).random((6, 12, 24, 24))),
        selected=state.chosen,
        key="heads",
        on_choose=lambda choice: state.update(chosen=choice),
    )
    st.text(f"chosen {state.chosen}")
# The drawing code arrives after the boards, which wait for it.
mounting.mount(SimpleNamespace(section="", title="", uses_input=False), opening={}, is_presenting=False)
