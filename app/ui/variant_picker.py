"""The widgets with which the visitor chooses attention variants and changes their settings.

A setting's declaration in ``attention_core`` determines its kind of widget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import streamlit as st

import attention_core as ac
from app.board_messages.panel import Knob
from app.jobs import cached, dispatch
from app.state import url
from app.state.session import REFERENCE, SharedOptions
from app.ui import input_panel
from app.ui.lazy import lazy_expander, lazy_popover
from app.words.i18n import _, _n, clauses, enumeration, escape_markdown, paragraph
from app.words.labels import family_title, label, setting_name
from attention_core.limits import current
from attention_core.variant import Setting, Value

T = TypeVar("T")


OPEN_SETTINGS = "variants.opened"
"""Session key of the keys of variants whose settings are open."""
SETTINGS_KEY = "variants.settings"
"""Key of the container that holds the open settings."""


def show(*, keeps_all: bool = False, uses_input: bool = True) -> None:
    """Draw one chip (a small button) per chosen variant, the menu of all variants, and below them the open settings.

    The choice is ``SharedOptions.variants``, in display order; softmax, the reference, always stays.

    Args:
        keeps_all: whether the page also shows variants that cannot be causal while causal is on.
        uses_input: whether the page uses the chosen input. If its keys are those of another sequence, some variants
            are left out.
    """
    refusals = _refusals(keeps_all=keeps_all, uses_input=uses_input)
    opened = st.session_state.get(OPEN_SETTINGS, ())
    with st.container(horizontal=True, gap="xsmall", key="variants.chips"):
        for attention, reason in refusals.items():
            st.button(
                label(attention),
                key=f"variants.chip.{attention.key}",
                help=_(attention.variant.summary),
                icon=":material/block:" if reason else ":material/tune:",
                type="primary" if attention.key in opened else "tertiary" if reason else "secondary",
                on_click=partial(toggle_settings, attention.key),
            )
        show_menu(_("Add or remove"))
    _draw_settings(refusals)


def show_menu(label: str, *, is_main: Callable[[ac.Variant], bool] = lambda variant: True, others: str = "") -> None:
    """Draw the menu of all variants, with which they are added and removed.

    Args:
        label: the label of the menu.
        is_main: returns whether a variant is shown immediately; other variants are in a closed part of the menu.
        others: the title of this part.
    """
    draw = partial(_draw_menu, is_main, others)
    lazy_popover(label, draw, key="variants.menu", icon=":material/add:", type="tertiary")


def show_settings(*, keeps_all: bool = False) -> None:
    """Draw the open settings on a page without chips, on which buttons on a board's panels open the settings.

    Args:
        keeps_all: whether the page also shows variants that cannot be causal while causal is on.
    """
    _draw_settings(_refusals(keeps_all=keeps_all))


def _refusals(*, keeps_all: bool, uses_input: bool = True) -> dict[ac.Attention, str | None]:
    """Return, for each chosen variant, the reason why this screen leaves it out; None if the variant is shown."""
    is_cross = uses_input and not keeps_all and input_panel.has_cross_input()
    return {each: None if keeps_all else _refusal(each, is_cross=is_cross) for each in SharedOptions.variants.value}


def _draw_settings(refusals: Mapping[ac.Attention, str | None]) -> None:
    opened = [attention for attention in refusals if attention.key in st.session_state.get(OPEN_SETTINGS, ())]
    if opened:
        with st.container(border=True, key=SETTINGS_KEY):
            for attention in opened:
                _draw_variant_settings(attention, refusals[attention])


def toggle_settings(key: str) -> None:
    """Open the settings of a chosen variant in the next run, or close them.

    The settings are drawn above the content of the page and do not cover it.
    """
    st.session_state[OPEN_SETTINGS] = () if key in st.session_state.get(OPEN_SETTINGS, ()) else (key,)


def board_knob(attention: ac.Attention, n: int) -> Knob | None:
    """Return the slider of a variant's budget on its panel, with values for ``n`` tokens; None without a budget."""
    budget = attention.variant.budget
    if budget is None:
        return None
    now = getattr(attention.params, budget.name)
    return Knob(setting_name(budget.name), stops(budget, now, n), now)


def _close() -> None:
    st.session_state[OPEN_SETTINGS] = ()


def refusal_text(reason: str) -> str:
    """Return the message for a variant that is left out because it cannot be causal, as Markdown."""
    condition = _("This variant is left out while the causal mask is on.")
    return f":material/block: {paragraph(escape_markdown(reason), condition)}"


def allowed_variants() -> list[ac.Attention]:
    """Return the chosen variants, without those that do not allow the causal mask or the keys of this input."""
    is_cross = input_panel.has_cross_input()
    return [each for each in SharedOptions.variants.value if not _refusal(each, is_cross=is_cross)]


def show_left_out() -> None:
    """Draw a message for each chosen variant that is left out because it cannot be causal.

    One more message lists the variants that are left out because queries and keys come from different sequences.
    """
    is_cross, reasons = input_panel.has_cross_input(), dict[str, list[str]]()
    for attention in SharedOptions.variants.value:
        variant, title = attention.variant, _(attention.title)
        if SharedOptions.causal.value and variant.causal_reason:
            reason = _("{name} cannot be causal: {reason}", name=title, reason=_(variant.causal_reason))
            st.caption(refusal_text(reason))
        elif is_cross and variant.cross_reason:
            reasons.setdefault(_(variant.cross_reason), []).append(title)
    if reasons:
        groups = [
            _("{names} ({reason})", names=enumeration(names), reason=reason.rstrip(".。"))
            for reason, names in reasons.items()
        ]
        text = _n(
            "This variant is left out because the queries and the keys come from different sequences: {variants}.",
            "These variants are left out because the queries and the keys come from different sequences: {variants}.",
            n=sum(map(len, reasons.values())),
            variants=clauses(groups),
        )
        st.caption(f":material/block: {escape_markdown(text)}")


def compute_for_each_variant(compute: Callable[[ac.Attention], T]) -> dict[ac.Attention, T]:
    """Compute a result for every chosen variant, and draw a message for each variant that cannot be computed.

    ``compute`` is called once per variant, so that a changed setting recomputes only its own variant.
    """
    with cached.spinner(_("Computing the variants …")):
        # ``allowed_variants`` leaves out variants that ``compute`` would refuse. ``compute`` itself would refuse them
        # only after waiting for other visitors' computations.
        results = {attention: compute(attention) for attention in allowed_variants()}
    show_left_out()
    return results


def _refusal(attention: ac.Attention, *, is_cross: bool) -> str | None:
    """Return why a variant is left out on this screen; None if it is shown."""
    if SharedOptions.causal.value and attention.variant.causal_reason:
        return attention.variant.causal_reason
    return attention.variant.cross_reason if is_cross else None


def _draw_variant_settings(attention: ac.Attention, reason: str | None) -> None:
    variant = attention.variant
    st.caption(f"**{_(variant.title)}**: {_(variant.summary)}")
    if reason:
        causal = SharedOptions.causal.value and variant.causal_reason
        st.info(
            _("This variant is left out while **Causal** is on: {reason}", reason=_(reason))
            if causal
            else _(
                "This variant is left out because the queries and the keys come from different sequences: {reason}",
                reason=_(reason),
            )
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        draw_knobs(attention, partial(_change_setting, variant.key))
        if variant.key != REFERENCE:
            st.button(
                _("Remove"),
                icon=":material/delete:",
                key=f"variants.remove.{variant.key}",
                on_click=partial(_remove, variant.key),
                type="tertiary",
            )
        key = f"variants.close.{variant.key}"
        st.button(_("Close"), icon=":material/close:", key=key, on_click=_close, type="tertiary")


SettingCallback = Callable[[str, Value], None]
"""Callback that receives a setting's name and its new value."""


def draw_knobs(
    attention: ac.Attention, on_change: SettingCallback, *, prefix: str = "knob", hidden: Sequence[str] = ()
) -> None:
    """Draw the widgets for the settings of a variant, except the ``hidden`` ones, which have no effect here.

    ``prefix`` begins the widgets' keys. ``on_change`` is called before the script reruns.
    """
    for setting in attention.variant.params.settings():
        if setting.name not in hidden:
            _draw_knob(attention, setting, on_change, f"{prefix}.{attention.key}.{setting.name}")


def _draw_knob(attention: ac.Attention, setting: Setting, on_change: SettingCallback, key: str) -> None:
    # The widget gets its value from the chosen variants, which a link or a reset may have changed since the last run.
    st.session_state[key] = getattr(attention.params, setting.name)
    title, help_ = setting_name(setting.name).capitalize(), _(setting.help)
    callback = partial(_report_change, setting.name, key, on_change)
    if setting.kind == "choice":
        st.segmented_control(
            title, setting.choices, format_func=setting_name, key=key, help=help_, on_change=callback, required=True
        )
    elif setting.kind == "bool":
        st.toggle(title, key=key, help=help_, on_change=callback)
    elif setting.scale == "log":
        value = st.session_state[key]
        max_value = max(current().matrix_tokens, float(value))
        st.select_slider(title, stops(setting, value, max_value), key=key, help=help_, on_change=callback)
    elif setting.name == "seed":
        st.number_input(title, setting.low, setting.high, step=setting.step, key=key, help=help_, on_change=callback)
    else:
        st.slider(title, setting.low, setting.high, step=setting.step, key=key, help=help_, on_change=callback)


def stops(setting: Setting, value: float, max_value: float) -> list[float]:
    """Return the sorted values of a setting's slider, including ``value``; integers above ``max_value`` are left out.

    A logarithmic setting has about four values per doubling; any other has the values of its steps.
    """
    low, high = float(setting.low or 0), float(setting.high or 0)
    is_int = setting.kind == "int"
    top = max(low, min(high, max_value)) if is_int else high
    values = {low, top, float(value)}
    if setting.scale == "log":
        power = 1.0
        while power < high:
            values |= {power * f for f in (1, 1.25, 1.5, 1.75)} | {f / power for f in (1, 1.25, 1.5, 1.75)}
            power *= 2
        values |= {float(setting.default)}
    else:
        step = float(setting.step or (high - low) / 20)
        values |= {low + step * i for i in range(int((top - low) / step + 0.5))}
    stops = {s for s in values if low <= s <= top and (not is_int or s == int(s))}
    return sorted({int(s) if is_int else float(f"{s:.3g}") for s in stops} | {value})


def with_setting(attention: ac.Attention, name: str, value: Value) -> ac.Attention:
    """Return the variant with one setting changed."""
    settings = {s.name: getattr(attention.params, s.name) for s in attention.variant.params.settings()}
    return ac.get(attention.key, **settings | {name: value})


def _report_change(name: str, key: str, on_change: SettingCallback) -> None:
    with suppress(ac.LabError):  # The browser may have sent the value before the last run made it invalid.
        on_change(name, st.session_state[key])


def set_budget(key: str, value: object) -> None:
    """Set the budget of a chosen variant; ignore a value that is not valid."""
    for attention in SharedOptions.variants.value:
        if attention.key == key and attention.variant.budget is not None:
            with suppress(ac.LabError):
                _change_setting(key, attention.variant.budget.name, value)


def redraw(draw: Callable[[ac.Attention], T], key: str) -> T | None:
    """Return what ``draw`` returns for a chosen variant with its current settings; None if it has been removed."""
    attention = next((each for each in SharedOptions.variants.value if each.key == key), None)
    if attention is None:
        return None
    with cached.page_lock().acquired(dispatch.visitor()):
        return draw(attention)


def _change_setting(key: str, name: str, value: Any) -> None:  # noqa: ANN401 - the setting validates the value
    SharedOptions.variants.set(
        tuple(with_setting(a, name, value) if a.key == key else a for a in SharedOptions.variants.value)
    )


def _remove(key: str) -> None:
    SharedOptions.variants.set(tuple(a for a in SharedOptions.variants.value if a.key != key))


def _draw_menu(is_main: Callable[[ac.Variant], bool], others: str) -> None:
    count = len(SharedOptions.variants.value)
    if count >= current().compared_variants:
        st.caption(_("At most {count} variants can be compared. Remove one to add another.", count=count))
    _draw_families([each for each in ac.all_variants() if is_main(each)], "variants.menu")
    if rest := [each for each in ac.all_variants() if not is_main(each)]:
        lazy_expander(others, partial(_draw_families, rest, "variants.others"), key="variants.others")


def _draw_families(variants: Sequence[ac.Variant], prefix: str) -> None:
    """Draw one group of buttons per family, with which these variants are added and removed."""
    chosen = [a.key for a in SharedOptions.variants.value]
    for family in ac.families():
        members = [v for v in variants if v.family == family and v.key != REFERENCE]
        if not members:
            continue
        key = url.sync_widget(f"{prefix}.{family}", [v.key for v in members if v.key in chosen])
        titles = {v.key: _(v.title) for v in members}
        st.pills(
            family_title(family),
            list(titles),
            key=key,
            selection_mode="multi",
            format_func=titles.__getitem__,
            on_change=partial(_choose_variants, key, tuple(titles)),
        )


def _choose_variants(key: str, members: Iterable[str]) -> None:
    selected = set(st.session_state[key])
    remaining = tuple(a for a in SharedOptions.variants.value if a.key in selected or a.key not in members)
    added = tuple(ac.get(key) for key in members if key in selected - {a.key for a in remaining})
    SharedOptions.variants.set((remaining + added)[: current().compared_variants])
