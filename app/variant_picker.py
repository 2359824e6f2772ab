"""Registry and settings -> widgets -> the chosen variants. Every knob is made from its declaration."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import streamlit as st

import attention_core as ac
from app.naming import family_title, label, readable
from app.text import _, literal, paragraph
from app.visit import REFERENCE, Visit
from attention_core.limits import current
from attention_core.variant import Setting, Value


def show(*, all_stay: bool = False) -> None:
    """Draw one chip per chosen variant, its knobs behind it, and the menu of the others.

    The choice is ``Visit.variants``, in the order shown; softmax, the reference, always stays.

    Args:
        all_stay: whether variants that cannot be causal take part even while causal is on.
    """
    with st.container(horizontal=True, gap="xsmall", key="variants.chips"):
        for attention in Visit.variants.value:
            _chip(attention, refused=None if all_stay else _refusal(attention))
        _menu()


def left_out(reason: str) -> str:
    """What is said, as Markdown, where a variant is not drawn as it cannot hide the future."""
    return f":material/block: {paragraph(literal(reason), _('It is left out while causal is on.'))}"


def _refusal(attention: ac.Attention) -> str | None:
    return attention.variant.causal_reason if Visit.causal.value else None


def _chip(attention: ac.Attention, refused: str | None) -> None:
    variant = attention.variant
    with st.popover(
        label(attention),
        type="tertiary" if refused else "secondary",
        icon=":material/block:" if refused else None,
        key=f"variants.chip.{variant.key}",
    ):
        st.markdown(_(variant.summary))
        if refused:
            st.info(_("Left out while causal is on: {reason}", reason=_(refused)))
        knobs(attention, partial(_turn, variant.key))
        if variant.key != REFERENCE:
            st.button(
                _("Remove"),
                icon=":material/close:",
                key=f"variants.remove.{variant.key}",
                on_click=partial(_remove, variant.key),
                type="tertiary",
            )


Take = Callable[[str, Value], None]
"""What is done with a setting's name and its new value."""


def knobs(attention: ac.Attention, take: Take, *, place: str = "knob", without: Sequence[str] = ()) -> None:
    """Draw the knobs of a variant.

    Args:
        attention: the variant with its settings as they are.
        take: called when a knob was turned, before the script runs again.
        place: begins the widgets' keys.
        without: settings that make no difference here.
    """
    for setting in attention.variant.params.settings():
        if setting.name not in without:
            _knob(attention, setting, take, f"{place}.{attention.key}.{setting.name}")


def _knob(attention: ac.Attention, setting: Setting, take: Take, key: str) -> None:
    # The chosen variants are the truth: a link or a reset may have changed them since the widget was drawn.
    st.session_state[key] = getattr(attention.params, setting.name)
    title, help_ = readable(setting.name).capitalize(), _(setting.help)
    change = partial(_pass_on, setting.name, key, take)
    if setting.kind == "choice":
        st.segmented_control(
            title, setting.choices, format_func=_, key=key, help=help_, on_change=change, required=True
        )
    elif setting.kind == "bool":
        st.toggle(title, key=key, help=help_, on_change=change)
    elif setting.scale == "log":
        st.select_slider(title, _ladder(setting, st.session_state[key]), key=key, help=help_, on_change=change)
    elif setting.name == "seed":
        st.number_input(title, setting.low, setting.high, step=setting.step, key=key, help=help_, on_change=change)
    else:
        st.slider(title, setting.low, setting.high, step=setting.step, key=key, help=help_, on_change=change)


def _ladder(setting: Setting, now: Value) -> list[Value]:
    """The stops of a logarithmic knob, about four per doubling, none beyond what a drawn matrix can show."""
    low, high = float(setting.low or 0), float(setting.high or 0)
    whole = setting.kind == "int"
    stops = {low, high, float(setting.default)}
    power = 1.0
    while power < high:
        stops |= {power * part for part in (1, 1.25, 1.5, 1.75)} | {part / power for part in (1, 1.25, 1.5, 1.75)}
        power *= 2
    top = min(high, max(current().matrix_tokens, float(now))) if whole else high
    kept = {s for s in stops if low <= s <= top and (not whole or s == int(s))} | {float(now)}
    return sorted({int(s) if whole else float(f"{s:.3g}") for s in kept} | {now})


def turned(attention: ac.Attention, name: str, value: Value) -> ac.Attention:
    """The variant with one setting changed."""
    now = {s.name: getattr(attention.params, s.name) for s in attention.variant.params.settings()}
    return ac.get(attention.key, **now | {name: value})


def _pass_on(name: str, key: str, take: Take) -> None:
    take(name, st.session_state[key])


def _turn(key: str, name: str, value: Value) -> None:
    Visit.variants.set(tuple(turned(a, name, value) if a.key == key else a for a in Visit.variants.value))


def _remove(key: str) -> None:
    Visit.variants.set(tuple(a for a in Visit.variants.value if a.key != key))


def _menu() -> None:
    chosen = [a.key for a in Visit.variants.value]
    with st.popover(_("Add or remove"), icon=":material/add:", type="tertiary", key="variants.menu"):
        if len(chosen) >= current().compared_variants:
            st.caption(_("{count} variants at once are the most; remove one to add another.", count=len(chosen)))
        for family in ac.families():
            members = [v for v in ac.all_variants() if v.family == family and v.key != REFERENCE]
            if not members:
                continue
            key = f"variants.menu.{family}"
            st.session_state[key] = [v.key for v in members if v.key in chosen]
            titles = {v.key: _(v.title) for v in members}
            st.pills(
                family_title(family),
                list(titles),
                key=key,
                selection_mode="multi",
                format_func=titles.__getitem__,
                on_change=partial(_choose, family, tuple(titles)),
            )


def _choose(family: str, members: Iterable[str]) -> None:
    wanted = set(st.session_state[f"variants.menu.{family}"])
    kept = tuple(a for a in Visit.variants.value if a.key in wanted or a.key not in members)
    new = tuple(ac.get(key) for key in members if key in wanted - {a.key for a in kept})
    Visit.variants.set((kept + new)[: current().compared_variants])
