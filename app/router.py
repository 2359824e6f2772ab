"""The function that draws the whole app on every rerun: the menu, the shared input, the page's header, and the page."""

from contextlib import suppress
from functools import partial
from pathlib import Path

import streamlit as st

from app.jobs import cached, dispatch
from app.lessons import add_button, card
from app.lessons.options import LessonOptions
from app.page import SECTIONS, Page, discover
from app.page_script import mounting
from app.server import gc_tuning
from app.state import url
from app.state.controls import Options
from app.state.session import LanguageOptions, SharedOptions, opening_fields, read_text, write_text
from app.ui import export_metadata, input_panel, navigation, partial_rerun
from app.ui.input_forms import PHOTO, UPLOAD, has_upload
from app.ui.lazy import lazy_popover
from app.ui.scope import Scope
from app.words.i18n import C_, _, set_language
from attention_core.errors import LabError

FOLDER = Path(__file__).parent


def show() -> None:
    """Run the app once, after waiting for this visitor's turn."""
    with cached.page_lock().acquired(dispatch.visitor()):
        _run_app()


def _run_app() -> None:
    """Run the app. An address without a path opens the page that has no section."""
    # Streamlit loads symbols and emoji for the browser tab from another server, so the icon is a local file.
    st.set_page_config(page_icon=str(FOLDER / "icon.svg"), layout="wide")
    partial_rerun.mark_full_run()
    url.open_link()
    url.register_fields(LanguageOptions.fields())
    set_language()

    def body() -> None:
        url.register_fields(page.options.fields())
        card.hide_answer(key)
        card.close_finished_lesson(key)
        if page.uses_input:
            with st.sidebar:
                if page.input_panel:
                    page.input_panel()
                else:
                    input_panel.show(hides_special=page.hides_special, open_heads=page.open_heads)
        draw = partial(_draw, key, page)
        # A page is drawn as a fragment (a part that reruns alone) only if its input needs no computation. Streamlit can
        # stop a run of the whole page during a long computation, but not a run of a fragment.
        if page.runs_as_fragment and (not page.uses_input or input_panel.is_ready()):
            partial_rerun.show(partial(_read_state, page), draw, partial(_outer_dependencies, page))
        else:
            draw()

    entries = {
        key: st.Page(body, title=_(each.title), icon=each.icon, url_path=key, default=not each.section)
        for key, each in discover().items()
    }
    navigation.store_menu_entries(entries)
    sections = {
        _(section): [entries[key] for key, each in discover().items() if each.section == section]
        for section in ("", *SECTIONS)
    }
    current_page = st.navigation(sections, position="top")
    key = next(key for key, entry in entries.items() if entry == current_page)
    page = discover()[key]
    fields = opening_fields(page.opening())
    url.register_fields(fields)
    opening = url.opening_query(fields | page.options.fields())
    mounting.mount(page, opening=opening, is_presenting=LessonOptions.present.value)
    st.set_page_config(page_title=f"{_(page.title)} · Attention Lab", initial_sidebar_state="collapsed")
    current_page.run()
    gc_tuning.freeze_objects(current_page.url_path)


def _draw(key: str, page: Page[object]) -> None:
    """Draw the page without the sidebar, and write its link into the address bar; ``key`` is the page's name."""
    url.show_notices(st.empty())
    scope, subtitle = _read_scope(page)
    export_metadata.store_page(key, scope)
    _draw_header(key, page, subtitle)
    reveal = card.show(key)
    with suppress(input_panel.NoInputError):
        page.draw()
    reveal()
    url.finish_run()


def _read_scope(page: Page[object]) -> tuple[Scope | None, str | None]:
    """Return the page's scope (heads, tokens and variants of its numbers) and subtitle; None and "" without input.

    The subtitle is None if the page does not depend on the input.
    """
    if not page.uses_input:
        return (page.scope() if page.scope else None), ""
    try:
        options = SharedOptions.current()
        chosen = input_panel.read_input(options, page.only_input(options))
    except LabError:
        return None, ""  # ``page.draw`` reads the input again later and shows this error.
    if chosen is None:
        return None, ""
    scope = page.scope(chosen) if page.scope else input_panel.scope(chosen, hides_special=page.hides_special)
    return scope, input_panel.headline(chosen.source, scope)


def _read_state(page: Page[object]) -> None:
    """Read the address and the options at the start of a fragment rerun, which skips the code of a full run."""
    url.open_link()
    url.register_fields(opening_fields(page.opening()))
    url.register_fields(page.options.fields())


def _outer_dependencies(page: Page[object]) -> tuple[object, ...]:
    """Return the values that the sidebar and the styles depend on.

    The variants are among them on most pages, because the sidebar's link to the view of all heads contains them.
    """
    excluded = {SharedOptions.variants.name} if page.open_heads or page.input_panel else set()
    return (
        *(url.value(name) for name in Options.shared() if name not in excluded),
        st.session_state.get(UPLOAD),
        st.session_state.get(PHOTO),
    )


def _draw_header(key: str, page: Page[object], subtitle: str | None) -> None:
    """Draw the page's question, its subtitle, the causal switch, the page's own controls, and the Share form."""
    url.write_and_report()
    if not page.question:
        return
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="page-header"
    ):
        with st.container(width="content", gap=None, key="question"):
            st.markdown(f"# {page.heading() if page.heading else _(page.question)}", anchors=False)
            if page.uses_input and subtitle is not None:
                st.caption(
                    f"[{subtitle or _('Choose the input')}](#input)"
                )  # app/page_script/navigation/to_input.js opens the input when this link is clicked.
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            if page.has_causal_switch:
                SharedOptions.causal.draw(width="content")
            if page.header:
                page.header()
            intro = _(
                "This link opens this screen with its input, variants and settings. The address bar shows the same "
                "link."
            )
            label = _(C_("give others a link", "Share"))
            lazy_popover(
                label, partial(_share, key), intro=intro, key="share", icon=":material/share:", type="tertiary"
            )


def _share(key: str) -> None:
    """Draw the link to the current screen, and the options for saved charts, presenting and lessons."""
    kind = discover()[key].input_kind(SharedOptions.current())
    if has_upload(kind):
        st.info(_("The link does not contain the uploaded file. Anyone who opens it must upload the file again."))
    elif kind == "text":
        text = SharedOptions.text.value
        if (kept := len(read_text(write_text(text)))) < len(text):
            st.info(_("The link and a reload open only the first {n:,} characters of this long text.", n=kept))
    address = (st.context.url or "").split("?")[0]  # Outside a browser, for example in a test, there is no URL.
    st.code(address + url.query_string(url.current_query()), language=None, wrap_lines=True)
    SharedOptions.picture.draw()
    LessonOptions.present.draw()
    add_button.show(key)
