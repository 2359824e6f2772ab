"""Browser tests of languages: switching without a reload, complete Chinese pages, and a language with longer words."""

import os
import shutil
import signal

import pytest
from browser import SIDEWAYS, board, drawn, settle, visit, words
from conftest import ROOT, free_port, start
from playwright.sync_api import expect
from pseudo_language import catalogue_of, install, pseudo_catalogue

from app.page_script import bundling
from app.words import glossary
from app.words.i18n import C_, SETTING

HEAD = glossary.ENTRIES[0]
CHINESE = {
    C_("name of this language", "English"): "简体中文",
    "Matrices": "注意力矩阵",
    "Causal": "因果",
    "Softmax": "标准注意力",
    C_(SETTING, "window"): "窗口",
    HEAD.forms: "注意力头|head|头",
    HEAD.definition: "同一层中并行的注意力函数之一。",
}
SCREEN = "input=synthetic&n=24&heads=2&variants=softmax&variants=local~window~3&causal=1"
WALK = """
    const parent = (node) => node.parentElement ?? node.getRootNode().host;
    const hidden = (node) => node.getBoundingClientRect().width < 2; // for screen readers only
    function* shown(root) {
        for (const node of root.querySelectorAll("*")) {
            if (node.shadowRoot) yield* shown(node.shadowRoot);
            const own = [...node.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
            if (own && node.checkVisibility({ visibilityProperty: true }) && !node.closest("svg, .katex")) yield node;
        }
    }
"""
"""JavaScript that defines a generator of the visible elements with text."""
CUT = f"""() => {{
    {WALK}
    function isCut(node) {{
        const range = document.createRange();
        range.selectNodeContents(node);
        const {{ left, right, width }} = range.getBoundingClientRect();
        for (let around = node; width && around && around !== document.body; around = parent(around)) {{
            if (hidden(around)) return false;
            const {{ overflowX, display }} = getComputedStyle(around);
            if (overflowX === "visible" || display === "inline") continue;
            const box = around.getBoundingClientRect();
            const scrolls = overflowX !== "hidden" && overflowX !== "clip";
            if (scrolls && box.right <= innerWidth + 1) return false;
            if (right > box.right + 1 || left < box.left - 1) return true;
        }}
        return right > innerWidth + 1 || left < -1;
    }}
    return [...shown(document.body)].filter(isCut).map((node) => node.textContent.trim());
}}"""
"""JavaScript that returns the texts of which a part is cut off or outside the window."""
ENGLISH = f"""() => {{
    {WALK}
    const isName = (node) => node.closest("code, pre, a[href^=http]");
    const part = (each) => (each.nodeType === Node.TEXT_NODE ? each.data : "");
    const ownText = (node) => [...node.childNodes].map(part).join("");
    const texts = [...shown(document.body)].filter((node) => !isName(node) && !hidden(node)).map(ownText);
    return texts.filter((text) => /[A-Za-z]{{2,}}(?:[ ,’-]+[A-Za-z]{{2,}}){{2,}}/.test(text));
}}"""
"""JavaScript that returns the texts with three Latin words in a row, except code and the titles of publications."""


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Yield the address of the app with two more languages: some Chinese, and a pseudo-language of longer words."""
    folder, port = tmp_path_factory.mktemp("translated"), free_port()
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__", "locale"))
    for name in ("pages", "attention_core"):
        (folder / name).symlink_to(ROOT / name)
    install(catalogue_of(CHINESE, "zh_CN"), folder / "app" / "locale", "zh_CN")
    install(pseudo_catalogue(), folder / "app" / "locale", "eo")
    process = start("app", port, folder, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)})
    yield f"http://127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    process.wait(20)


def choose(page, code):
    page.locator(".language-choice").select_option(code)
    settle(page)


def test_switching_needs_no_reload_and_changes_only_words(page, translated):
    visit(page, f"{translated}/matrices?{SCREEN}")
    choice = page.locator(".language-choice")
    expect(choice).to_have_value("en")
    assert choice.locator("option").all_inner_texts() == ["English", "English lööng", "简体中文"]
    board(page).get_by_role("slider").fill("5")
    settle(page)
    page.evaluate("window.same = true")
    before, picture = words(page), drawn(board(page).locator("canvas").first)
    choose(page, "zh")
    assert words(page) == before | {"lang=zh"}
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    expect(page.get_by_test_id("stTopNavSection").first).to_contain_text("Explore")
    expect(page.get_by_test_id("stMain").get_by_text("因果")).to_be_visible()
    expect(board(page)).to_contain_text("窗口")
    expect(board(page).get_by_role("slider")).to_have_value("5")
    assert drawn(board(page).locator("canvas").first) == picture
    link = page.get_by_test_id("stTopNavLink").first
    link.hover()
    assert link.get_attribute("href").endswith("?lang=zh")

    sentence = "每个注意力头、每个head和KV cache的行。Ahead of Kern"
    page.evaluate(
        """(text) => {
            const places = [...document.querySelectorAll("[data-testid=stMain] [data-testid=stMarkdownContainer]")];
            const place = places.find((each) => !each.closest("button, a, label, summary"));
            place.append(Object.assign(document.createElement("p"), { textContent: text }));
        }""",
        sentence,
    )
    marked = page.locator("p", has_text=sentence).locator(".glossary-term")
    expect(marked).to_have_text(["注意力头", "KV cache"])  # Another form of a term is not marked again.
    marked.first.hover()
    expect(page.get_by_role("tooltip")).to_have_text(CHINESE[HEAD.definition])

    page.go_back()
    settle(page)
    expect(choice).to_have_value("en")
    assert words(page) == before
    assert page.evaluate("window.same"), "the page was reloaded"


@pytest.mark.parametrize("address", ["", f"matrices?{SCREEN}", "claims?input=synthetic&n=32&heads=1"])
def test_no_word_is_cut_off_on_a_phone_in_a_language_with_longer_words(phone, translated, address):
    visit(phone, f"{translated}/{address}{'&' if '?' in address else '?'}lang=eo")
    expect(phone.locator(".language-choice")).to_have_value("eo")
    expect(phone.get_by_role("heading", name="lööng").first).to_be_visible()
    assert phone.evaluate(SIDEWAYS) <= phone.viewport_size["width"]
    assert phone.evaluate(CUT) == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "matrices?input=synthetic&n=32&heads=2",
        "masks?lesson=local_then_atrous",
        "claims?input=synthetic&n=32&heads=1",
    ],
)
@pytest.mark.parametrize("size", [(390, 844), (1280, 720)])
def test_the_shipped_chinese_is_complete_and_nothing_is_cut_off(page, phone, server, address, size):
    screen = phone if size[0] < 500 else page
    screen.set_viewport_size({"width": size[0], "height": size[1]})
    visit(screen, f"{server}/{address}{'&' if '?' in address else '?'}lang=zh")
    expect(screen.locator(".language-choice")).to_have_value("zh")
    assert screen.evaluate(ENGLISH) == []
    assert screen.evaluate(CUT) == []
    assert screen.evaluate(SIDEWAYS) <= size[0]


def test_tokens_of_one_character_share_a_label(window):
    script = bundling.script(ROOT / "app" / "matrix_board" / "drawing" / "panel.js")
    labels = ["书", "书₂", "书 (2)", "书₂ (2)", "书₃", "好₂", "a", "a₃", "₂", "", "钥", "钥₂", "钥₃"]
    page = window.new_page()
    found = page.evaluate(
        f"(labels) => {{ {script}; return labels.map((_, i) => lastTokenOfCharacter(labels, i)); }}", labels
    )
    page.close()
    assert found == [1, -1, 4, -1, -1, 5, 6, 7, 8, 9, 12, -1, -1]
