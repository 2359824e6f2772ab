"""A small app with features that are hard for a load client; it writes its state into its address."""

import time
from types import SimpleNamespace

import streamlit as st

from app.page_script import mounting
from app.ui.lazy import lazy_popover

state, query = st.session_state, st.query_params


def write_address(**values):
    for name, value in values.items():
        query[name] = str(value)


def reset():
    state.level = 1


def knobs():
    state.runs = state.get("runs", 0) + 1
    st.slider("Level", 0, 9, 5, key="level")
    unit = st.selectbox("Unit", ["short", "long"], key="unit", on_change=reset)
    if unit == "long":
        st.slider("Only for long ones", 0.0, 1.0, 0.5, key="only")
    st.text("x" * 50_000)
    st.button("Run", key="start", on_click=lambda: state.update(started=True))
    with st.popover("More"):
        st.toggle("First inside", key="first")
        st.toggle("Second inside", key="second")
    part()
    write_address(level=state.level, unit=unit, runs=state.runs, started=state.get("started", False))


@st.fragment
def part():
    state.parts = state.get("parts", 0) + 1
    on = st.toggle("In a part", key="on")
    write_address(parts=state.parts, on=on)


def ticking():
    st.toggle("Here", key="here")
    st.fragment(tick, run_every=0.1 if state.get("ticks", 0) < 3 else None)()


def tick():
    state.ticks = state.get("ticks", 0) + 1
    write_address(ticks=state.ticks)
    if state.ticks == 3:
        st.rerun()


def slow():
    st.toggle("Here", key="slow")
    time.sleep(8)


def broken():
    st.toggle("Here", key="broken")
    raise ValueError("this page is broken")


def forms():
    mounting.mount(SimpleNamespace(section="", title="", uses_input=False), opening={}, is_presenting=False)
    lazy_popover("More", lambda: st.toggle("In a form", key="inside"), key="toy.form")
    st.button("Local", key="variants.chip.local", on_click=lambda: state.update(chip=not state.get("chip")))
    if state.get("chip"):
        st.toggle("In its settings", key="setting")
    st.button("Another", key="another")


def switch():
    st.toggle("Here", key="there")
    write_address(layer=query.get("layer", ""))


PAGES = {"": knobs, "matrices": knobs, "masks": slow, "inside": broken, "picture": knobs}
PAGES |= dict.fromkeys(("entropy", "error", "causal", "claims"), switch) | {"ticking": ticking, "forms": forms}
st.navigation(
    [st.Page(body, title=path or "home", url_path=path or "home", default=not path) for path, body in PAGES.items()]
).run()
