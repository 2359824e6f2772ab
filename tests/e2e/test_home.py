"""Browser tests of the sentence on Home with its arcs: sliders, the query word, the text about it, and links."""

import math
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import on, query, settle, visit, words
from playwright.sync_api import expect

import app
import attention_core as ac
from app.live_sentence.sentence import _texts
from app.page_script import bundling
from app.state import presets
from app.state.session import read_text
from attention_core.analysis.matrix.compare import compare

STORY = bundling.script(Path(app.__file__).parent / "live_sentence" / "story.js")
LABELS = ["The", "animal", "it", "."]


def matrix(word):
    """Return a variant's attention weights between the words of Home's sentence."""
    qkv = ac.inputs.from_text(presets.SENTENCE, layer=presets.SENTENCE_LAYER)
    return compare(qkv, ac.from_word(word), head=presets.SENTENCE_HEAD, causal=False, special=False).weights


def counters(word):
    """Return the texts for the error of "it" and the growth of the cost next to a variant's row."""
    qkv, variant = ac.inputs.from_text(presets.SENTENCE, layer=presets.SENTENCE_LAYER), ac.from_word(word)
    own, exact = (each.attend(qkv.q, qkv.k, qkv.v)[presets.SENTENCE_HEAD, 9] for each in (variant, ac.get("softmax")))
    long, short = (variant.cost(n, 32, heads=12).multiply_adds for n in (16_384, 8192))
    error = (own - exact).norm() / exact.norm()
    return f"output error of “it” {error:.0%}", f"cost if the text doubles × {long / short:.1f}"


def numbers(page, variant):
    """Return the numbers that the page shows below the words of a variant's row."""
    return page.locator(f'[data-variant="{variant}"] .number').all_inner_texts()


def percentages(row):
    """Return a row of weights, formatted as the page shows it."""
    return ["" if not abs(x) >= 0.03 else f"{round(100 * x)}%".replace("-", "\N{MINUS SIGN}") for x in row.tolist()]


def test_a_drag_sends_no_request_and_each_input_is_shown_announced_and_kept(page, server):
    requests = []
    # Streamlit's page loads its own scripts from /static/ when it needs them, so they do not count.
    page.on("request", lambda request: "/static/" in request.url or requests.append(request.url))
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: requests.append(frame)))
    page.set_viewport_size({"width": 1280, "height": 720})
    visit(page, f"{server}/?variants=softmax")
    summary, finding = page.locator(".summary"), page.locator(".finding")
    negative = page.get_by_text("Orange: negative.")
    expect(negative).to_be_hidden()
    arc = page.locator('[data-variant="local"] path').nth(1)
    expect(summary).to_contain_text(
        "Local hides “animal”, which is 7 tokens away, outside the window of 4. Linear has no exponential to enlarge "
        "differences, so all words get similar weights (6% to 10%). Nyström averages neighbouring tokens into "
        "landmarks, which blurs the weights."
    )
    expect(finding).to_have_text(
        "Among the words, “it” attends most to “animal” with softmax (77%). Nyström gives 51%, Linear 10% and Local 0%."
    )
    unshown = page.locator(".top .caption")
    expect(unshown).to_contain_text("[CLS] and [SEP] (not drawn) get 11% of softmax's weight;")
    assert summary.bounding_box()["y"] + summary.bounding_box()["height"] <= 720, "a projector shows all of it"
    assert percentages(matrix("local~window~4")[8]) == numbers(page, "local")
    assert arc.evaluate("(arc) => arc.style.opacity") == "0"

    window = page.get_by_role("slider", name="Local: window")
    page.mouse.move(*on(window, 3.5 / 14, 0.5))
    before = len(requests)
    page.mouse.down()
    for place in range(8, 28):
        page.mouse.move(*on(window, place / 28, 0.5))
    expect(finding).to_contain_text("Local gives 77%, Nyström 51% and Linear 10%.")
    expect(summary).not_to_contain_text("Local hides “animal”")
    page.wait_for_timeout(600)  # After a shorter pause in a drag, the browser would report to the server.
    assert len(requests) == before, "arcs follow the hand without a request"
    page.mouse.up()
    at = int(window.input_value()) + 1
    assert percentages(matrix(f"local~window~{at}")[8]) == numbers(page, "local")
    assert float(arc.evaluate("(arc) => arc.style.opacity")) > 0.8
    for word in (f"local~window~{at}", "linear", "nystrom~landmarks~8"):
        counts = page.locator(f'[data-variant="{word.partition("~")[0]}"] .counts')
        for counter in counters(word):
            expect(counts).to_contain_text(counter)
    page.wait_for_url("**window=*")
    settle(page)

    page.locator('[data-variant="nystrom"] .word').nth(6).hover()
    expect(finding).to_contain_text("Among the words, “street” attends most to “The” with softmax (51%).")
    expect(unshown).to_contain_text("get 91% of softmax's weight;")
    assert page.locator(".word.looking").count() == 4
    for key in ("softmax", "local", "linear", "nystrom~landmarks~8"):
        row = matrix(f"local~window~{at}" if key == "local" else key)[6]
        assert percentages(row) == numbers(page, key.partition("~")[0]), "one word looks in all rows"
    assert page.locator('[data-variant="nystrom"] path.negative').count() > 0
    expect(negative).to_be_visible()
    page.mouse.move(5, 715)
    expect(finding).to_contain_text("“it” attends")

    page.get_by_role("radio", name="it", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    expect(finding).to_contain_text("“because” attends most to “tired” with softmax (27%)")
    expect(page.get_by_role("status").filter(has_text="Softmax")).to_contain_text(
        "Softmax: “because” attends to “tired” 27%"
    )
    page.wait_for_url("**word=7*")
    assert words(page) == {"variants=softmax", "word=7", f"window={at}"}

    page.get_by_role("link", name="Open in Matrices").click()
    page.wait_for_url("**/matrices?*")
    address = parse_qs(urlsplit(page.url).query)
    assert read_text(address["text"]) == presets.SENTENCE
    assert address["variants"] == ["softmax", f"local~window~{at}", "linear", "nystrom~landmarks~8"]
    assert (address["row"], address["layer"], address["head"], address["special"]) == (["7"], ["3"], ["1"], ["0"])
    settle(page)


def test_landmarks_that_are_single_tokens_are_not_called_averages(page, server):
    visit(page, f"{server}/?word=1&landmarks=14")
    expect(page.locator(".summary")).to_contain_text("Nyström averages neighbouring tokens into landmarks")
    page.get_by_role("slider", name="Nyström: landmarks").press("End")
    expect(page.locator(".summary")).to_contain_text("Nyström only approximates an inverse matrix")
    expect(page.locator(".summary")).not_to_contain_text("averages neighbouring tokens")


@pytest.fixture
def moving(window):
    """Yield a page of a visitor who has not asked for less motion, and the words that were the query, in order."""
    context = window.browser.new_context(reduced_motion="no-preference")
    page = context.new_page()
    page.add_init_script(
        """window.visited = [];
        new MutationObserver(() => {
            const roots = [...document.querySelectorAll("*")].map((each) => each.shadowRoot);
            const root = roots.find((each) => each?.querySelector(".sentence"));
            if (!root || window.watched) return;
            window.watched = true;
            const read = () => {
                const word = root.querySelector(".word.looking")?.dataset.word;
                if (word === undefined || word === window.visited.at(-1)) return;
                window.visited.push(word);
                window.reached?.(window.visited.length);
            };
            new MutationObserver(read).observe(root, { subtree: true, attributes: true, childList: true });
        }).observe(document, { subtree: true, childList: true });"""
    )
    yield page
    context.close()


def test_the_query_moves_along_the_sentence_once_to_its_word(moving, server):
    visit(moving, server)
    moving.wait_for_function("() => window.visited.length >= 9 && window.visited.at(-1) === '8'")
    expect(moving.locator(".sentence[data-touring]")).to_have_count(0)
    assert moving.evaluate("window.visited.slice(-9).map(Number)") == [*range(9)]
    expect(moving.locator(".finding")).to_contain_text("“it” attends most to “animal” with softmax (77%)")
    assert query(moving) == "", "the server is not asked"


def test_the_first_key_stops_the_moving_word(moving, server):
    # The page itself sends the key at the third word. On a busy machine, a key from the test might arrive after the
    # whole movement.
    moving.add_init_script(
        """window.reached = (count) => {
            if (count === 3) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Shift", bubbles: true }));
        };"""
    )
    moving.goto(server)
    moving.wait_for_function("() => window.visited.length >= 4")
    expect(moving.locator(".sentence[data-touring]")).to_have_count(0)
    visited = moving.evaluate("window.visited.map(Number)")
    assert visited[-1] == 8
    assert len(visited) == 4
    moving.wait_for_timeout(600)
    assert moving.evaluate("window.visited.map(Number)") == visited


def test_the_query_does_not_move_with_reduced_motion(page, server):
    visit(page, server)
    page.wait_for_timeout(1000)
    expect(page.locator(".sentence[data-touring]")).to_have_count(0)
    expect(page.get_by_role("radio", name="it", exact=True)).to_be_checked()


@pytest.mark.parametrize("word", [1, 8])
def test_arcs_cover_no_numbers_in_a_sentence_of_two_lines(page, server, word):
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server}/?word={word}")
    overlaps = page.locator('[data-variant="softmax"] .place').evaluate(
        """(place) => {
            const numbers = [...place.querySelectorAll(".number")].map((each) => each.getBoundingClientRect());
            const arcs = [...place.querySelectorAll("path")].filter((each) => each.getTotalLength());
            const top = place.getBoundingClientRect().y;
            return arcs.flatMap((arc) => {
                const length = arc.getTotalLength(), reach = Number(arc.style.strokeWidth) / 2;
                return Array.from({ length: 21 }, (_, i) => arc.getPointAtLength((i / 20) * length)).filter(({ y }) =>
                    y < reach || numbers.some((box) => y + reach > box.y - top && y - reach < box.bottom - top));
            }).length;
        }"""
    )
    assert overlaps == 0
    tops = {each.bounding_box()["y"] for each in page.locator('[data-variant="softmax"] .word').all()}
    assert len(tops) == 2


def test_the_numbers_are_explained_behind_a_button(page, server):
    visit(page, server)
    notes, button = page.locator(".notes"), page.get_by_role("button", name="About these numbers")
    expect(notes).to_be_hidden()
    button.focus()
    page.keyboard.press("Enter")
    expect(notes).to_contain_text("The output error of a word is the difference from softmax's output")
    expect(button).to_have_attribute("aria-expanded", "true")
    button.click()
    expect(notes).to_be_hidden()


def test_a_family_is_drawn_when_opened_and_is_in_the_link(page, server):
    visit(page, f"{server}/?variants=softmax")
    expect(page.locator(".variant")).to_have_count(0)
    for family in ("Sparse", "Mixed"):
        page.get_by_text(re.compile(rf"^{family}.*\(\d+\)")).first.click()
        settle(page)
    expected = sum(each.family in ("sparse", "mixed") for each in ac.all_variants())
    expect(page.locator(".variant")).to_have_count(expected)
    assert words(page) == {"variants=softmax", "family=sparse", "family=mixed"}
    page.reload()
    expect(page.locator(".variant")).to_have_count(expected)


def test_a_right_to_left_sentence_keeps_numbers_and_signs_in_order(page, server):
    visit(page, f"{server}/?variants=softmax")
    box = page.get_by_label("Your sentence")
    box.fill("שלום, 7 $& hello")
    box.press("Enter")
    expect(page.locator(".finding")).to_contain_text(re.compile("“\u2068[^\u2069”]+\u2069” attends"))
    style = "(each) => [getComputedStyle(each).direction, getComputedStyle(each).unicodeBidi]"
    assert page.locator(".number").first.evaluate(style)[0] == "ltr"
    assert page.locator(".word").first.evaluate(style) == ["rtl", "plaintext"]


@pytest.fixture(scope="module")
def text_of(window):
    """Yield a function that returns the finding about given weights and its reasons, computed in the browser."""
    page, words = window.new_page(), _texts()

    def story(*rows):
        sent = [
            {
                "name": title,
                "title": title,
                "setting": "4",
                "weights": [None if math.isnan(x) else x for x in row],
                "why": dict(zip(("less", "more", "negative", "even"), why, strict=False)),
            }
            for title, row, *why in rows
        ]
        return page.evaluate(
            f"""([words, labels, rows]) => {{
                {STORY}
                for (const row of rows) row.weights = row.weights.map((weight) => weight ?? NaN);
                return story(words, labels, 2, rows);
            }}""",
            [words, LABELS, sent],
        )

    yield story
    page.close()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.1, 0.49, 0.31, 0.1], "“it” attends most to “animal” with softmax (49%)."),
        ([0.1, 0.3, 0.5, 0.1], "“it” attends most to itself with softmax (50%)."),
    ],
)
def test_the_text_names_the_words_that_a_word_attends_to(text_of, row, expected):
    assert text_of(("Softmax", row), ("X", [1, 0, 0, 0]))[0] == f"Among the words, {expected} X gives 0%."
    assert text_of(("Softmax", row))[0] == f"Among the words, {expected}"


def test_the_finding_lists_the_weights_of_the_other_variants(text_of):
    def finding(*others):
        return text_of(("Softmax", [0, 0.8, 0.2, 0]), *others)[0].partition("(80%). ")[2]

    less, masked, tiny, most = (
        ("A", [0, -0.02, 0, 0]),
        ("B", [0, math.nan, 1, 0]),
        ("C", [0, 0.004, 0, 0]),
        ("D", [0, 0.9, 0, 0]),
    )
    assert finding(less, masked, tiny, most) == "D gives 90%, C <1%, B 0% and A \N{MINUS SIGN}2%."
    assert finding(masked, tiny) == "C gives <1% and B 0%."
    assert finding(masked) == "B gives 0%."


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0, 0.76, 0, 0], "All variants give “animal” about the same weight."),
        ([0, 0.84, 0, 0], "All variants give “animal” about the same weight."),
        ([0, 0.74, 0, 0], "X: “animal” is 1 away, 4."),
        ([0, math.nan, 0, 0], "X: “animal” is 1 away, 4."),
        ([0, -0.05, 0, 0], "X: “animal” is 1 away, 4."),
        ([0, 0.86, 0, 0], "X: more."),
        ([-0.09, 0.8, 0, 0], "All variants give “animal” about the same weight."),
        ([-0.11, 0.8, -0.1, 0], "All variants give “animal” about the same weight. X: −11% for “The”."),
        ([-0.11, 0.4, -0.1, 0], "X: −11% for “The”."),
        ([0, -0.5, 0, 0], "X: −50% for “animal”."),
    ],
)
def test_the_text_gives_the_reasons_for_another_weight_than_softmax(text_of, row, expected):
    why = ("{row}: “{target}” is {away} away, {setting}.", "{row}: more.", "{row}: {least} for “{other}”.")
    assert text_of(("Softmax", [0, 0.8, 0.2, 0]), ("X", row, *why))[1] == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.5, 0.3, 0.1, 0.1], "X: 10% to 50%."),
        ([0.51, 0.29, 0.1, 0.1], "X: less."),
        ([0.1, 0.78, 0.1, 0.02], "All variants give “animal” about the same weight."),
    ],
)
def test_weights_up_to_twice_equal_weights_are_reported_as_similar(text_of, row, expected):
    why = ("{row}: less.", "", "", "{row}: {low} to {high}.")
    assert text_of(("Softmax", [0, 0.8, 0.2, 0]), ("X", row, *why))[1] == expected
