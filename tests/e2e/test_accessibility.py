"""Browser tests of the accessibility of every page: faults found by axe-core, contrast, keyboard and small screens."""

from contextlib import suppress

import pytest
from browser import SIDEWAYS, open_input, settle, visit
from conftest import ROOT
from playwright.sync_api import TimeoutError

from app.page import discover
from app.state.controls import Control

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
SMALL = "input=synthetic&n=24&heads=2&variants=softmax&variants=local&variants=nystrom&h_longest=128&h_seeds=1"
OTHERWISE = {
    ("claims", "board"): "claim=nystrom_all_landmarks",
    # Texts that the model writes are not recorded. Without variants, it has to write fewer texts.
    ("model", "continuation"): "m_view=continuation&m_text=repeats&m_words=none",
    ("model", "trained"): "m_view=trained&trained=recall&trained=softmax&trained=steps~2",
}
"""Query parameters for views that no single option selects, or that are slow by default."""
SCREENS = ((1280, 720), (1024, 768), (390, 844))
"""Sizes of a screen of 1920 × 1080 at a zoom of 150 %, an old projector, and a phone."""
SERIOUS = """async () => {
    const rules = { region: { enabled: false } }; // moderate, and costly
    const options = { rules, resultTypes: ["violations"], selectors: false, preload: false };
    const { violations } = await axe.run(document, options);
    return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .flatMap(({ id, nodes }) =>
            nodes.map(({ html, any }) => `${id}: ${html.slice(0, 199)} (${any.map(({ message }) => message)})`),
        );
}"""
DRAWN = """() =>
    document.querySelector("body > style") && // the page itself carries the style sheet
    !document.querySelector("[data-testid=stSkeleton]") &&
    [...document.querySelectorAll("[data-testid=stBidiComponentRegular]")]
        .every((host) => host.querySelector(".main-svg"))
"""
DARK = """() =>
    getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor.match(/\\d+/g).every((c) => c < 99)
"""
PALE = """() => {
    const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const painted = (...colours) => {
        for (const colour of colours) {
            brush.fillStyle = colour;
            brush.fillRect(0, 0, 1, 1);
        }
        const [red, green, blue] = [...brush.getImageData(0, 0, 1, 1).data].map((value) => {
            const share = value / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    const ground = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
    return [...document.querySelectorAll(".js-plotly-plot text")]
        .filter((text) => text.textContent.trim() && !text.closest(".slicetext, .hoverlayer"))
        .filter((text) => {
            const [one, other] = [painted(ground), painted(ground, getComputedStyle(text).fill)];
            return Math.max(one, other) / Math.min(one, other) < 4.5;
        })
        .map((text) => `${getComputedStyle(text).fill}: ${text.textContent}`);
}"""
"""JavaScript that returns chart texts whose contrast to the page is below 4.5 to 1; axe does not check them."""
FOCUS = """() => {
    let found = document.activeElement;
    while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
    if (!found || found === document.body) return null;
    if (found.matches("main")) return "the page, which the arrows scroll";
    return found.getAttribute("aria-label") || found.labels?.[0]?.innerText || found.textContent.trim();
}"""
"""JavaScript that returns the name of the element with the keyboard focus, or null."""


def views():
    """Yield the page, view and address of every view; a page's first view needs no query parameter."""
    for key, page in discover().items():
        for view in page.views:
            plain = f"{page.view.name}={view}" if isinstance(page.view, Control) else ""
            word = OTHERWISE.get((key, view), plain)
            yield key, view, f"/{key if page.section else ''}?" + "&".join(filter(None, [SMALL, word]))


VIEWS = {f"{key}.{view}": address for key, view, address in views()}
FIRST = [f"{key}.{next(iter(page.views))}" for key, page in discover().items()]


def opened(page, server, view):
    visit(page, server + VIEWS[view])
    wait_until_drawn(page)


def wait_until_drawn(page):
    page.wait_for_function(DRAWN)
    settle(page)


def unfold(page):
    """Open all expanders. The content of an expander is built when it is opened, and may contain more expanders.

    The gallery has an expander for each family and for each variant, all of the same form. Three of them are opened.
    """
    most = 3 if page.locator(".st-key-gallery").count() else 9
    folded = page.locator("[data-testid=stExpander] details:not([open]) > summary")
    for _ in range(most):
        if not folded.count():
            return
        folded.first.click()
        settle(page)
    assert page.locator("[data-testid=stExpander] details[open]").count() >= most, "an expander does not stay open"
    assert most == 3, "only the gallery has this many"


def flaws(page):
    assert AXE.exists(), "The browser tests need axe-core: npm ci"
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(SERIOUS)
    with suppress(TimeoutError):
        page.wait_for_function(f"() => !({PALE})().length", timeout=10_000)  # Charts change colours later.
    return found + page.evaluate(PALE)


def test_every_view_has_its_own_address():
    assert len(set(VIEWS.values())) == len(VIEWS)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible_on_every_screen(page, server, view):
    width, height = SCREENS[0]
    page.set_viewport_size({"width": width, "height": height})  # A later change would redraw all charts.
    opened(page, server, view)
    unfold(page)
    assert flaws(page) == []
    if view in FIRST:
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(DARK)
        wait_until_drawn(page)
        assert flaws(page) == [], "in the dark"
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        fits = f"() => {SIDEWAYS} <= {width}"  # A function, because the page's security policy forbids an expression.
        with suppress(TimeoutError):
            page.wait_for_function(fits, timeout=3_000)  # Charts are resized a little later.
        assert page.evaluate(fits), f"{width} pixels are scrolled sideways"


TO_TOP = """() => {
    const first = document.createElement("span");
    first.tabIndex = -1;
    document.body.prepend(first);
    first.focus();
}"""
"""JavaScript that moves the start of the Tab order to the top of the page, wherever the last click was."""


def reached(page, most=120):
    """Yield the names of the elements that the Tab key reaches, from the top of a page to its end."""
    page.evaluate(TO_TOP)
    for _ in range(most):
        page.keyboard.press("Tab")
        text = page.evaluate(FOCUS)
        if text is None:
            return
        yield text
    pytest.fail("the keys never leave the page")


def test_every_control_works_with_only_the_keyboard(page, server):
    opened(page, server, "masks.reach")
    open_input(page)
    order = list(reached(page))
    expected = ["Tokens n", "Causal", "Variants", "Share", "Attention matrices", "Play", "Zoom in"]
    expected += ["Tokens that can read this token", "Save the chart as a picture", "How this is computed"]
    assert not [name for name in expected if not any(name in text for text in order)], order
    places = [next(i for i, text in enumerate(order) if name in text) for name in expected]
    assert places == sorted(places), "in the order they stand in"


def test_a_formula_that_scrolls_can_be_scrolled_by_keys(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/matrices?{SMALL}&variants=funnel&more=explain&explained=funnel")
    wide = page.locator(".katex-display[tabindex='0']").first
    wide.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(formula) => formula.scrollLeft > 0", arg=wide.element_handle())
