"""Browser tests of lessons, as a student takes them and as a teacher presents them."""

import math
import re

import pytest
from browser import board, on, query, saved, settle, visit
from playwright.sync_api import expect

from app.lessons.shipped import all_lessons


def card(page):
    return page.locator(".st-key-lesson")


def answered(page):
    """Return the text that the card shows after an answer."""
    answer = card(page).locator("p.answer")
    expect(answer).to_be_visible(timeout=60_000)
    return answer.inner_text().replace("\N{NO-BREAK SPACE}", " ")


def test_a_lesson_is_completed_from_the_list_with_guesses(page, server):
    visit(page, f"{server}/lessons")
    expect(page.locator(".lessons a.way")).to_have_count(len(all_lessons()))
    page.locator(".lessons a.way").filter(has_text="Local windows").click()
    for place, step in enumerate(all_lessons()["window_and_sink"].steps, 1):
        expect(card(page)).to_contain_text(f"Step {place} of 4")
        expect(card(page)).to_contain_text(step.ask)
        expect(card(page).locator("p.answer")).to_have_count(0)
        expect(board(page, "matrices.board")).to_be_visible(timeout=60_000)
        settle(page)
        check = card(page).get_by_role("button", name="Check")
        expect(check).to_be_disabled()
        card(page).get_by_role("radio").last.click()
        expect(check).to_be_enabled()
        settle(page)
        check.click()
        text = answered(page)
        number = re.search(r"It is (\d+)%", text)[1]
        if step.answer.startswith("output_error"):
            name = {"local": "Local", "sink": "Sink"}[step.answer.split()[1]]
            sentence = page.locator(".st-key-matrices-headline")
            expect(sentence).to_contain_text(re.compile(rf"{name}.*{number}%|{number}%.*{name}", re.IGNORECASE))
        if place < 4:
            card(page).get_by_role("link", name="Next").click()
    assert "lesson=window_and_sink" in query(page)
    card(page).get_by_role("button", name="Leave").click()
    expect(card(page)).to_have_count(0)
    expect(page).not_to_have_url(re.compile("lesson="))


def test_the_lesson_about_convolution_and_gate_is_taken_to_its_end(page, server):
    lesson = all_lessons()["convolution_and_gate"]
    visit(page, f"{server}/lessons")
    page.locator(".lessons a.way").filter(has_text=lesson.title).click()
    # The finding is above the chart, and its details are below it. The finding is hidden until the answer.
    result = page.locator(".st-key-learn-summary, [class*=st-key-learn-details]")
    for place, step in enumerate(lesson.steps, 1):
        expect(card(page)).to_contain_text(f"Step {place} of {len(lesson.steps)}")
        expect(card(page)).to_contain_text(step.ask)
        expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=60_000)
        settle(page)
        expect(page.locator(".st-key-learn-summary")).to_be_hidden()
        expect(page.get_by_text("Open in Matrices")).to_be_hidden()
        before = result.all_inner_texts()
        if step.choices:
            card(page).get_by_role("radio").last.click()
        else:
            card(page).get_by_role("slider").focus()
            page.keyboard.press("ArrowRight")
        settle(page)
        card(page).get_by_role("button", name="Check").click()
        share = re.findall(r"(?:It is|Answer:) (\d+%)", answered(page))[-1]
        expect(result).not_to_have_text(before, use_inner_text=True)
        name = {"linear": "Linear", "gated_deltanet": "Gated DeltaNet"}[step.answer.split()[1]]
        # The page states the variant's accuracy, or the training step at which the variant learned the task, or that
        # at least some share of its answers is correct.
        stated = re.compile(rf"{name} \(({share}|step \d+)\)|{share} for {name}|correct with [^.]*{name}")
        expect(result.filter(has_text=stated)).to_have_count(1)
        if place < len(lesson.steps):
            settle(page)
            card(page).get_by_role("link", name="Next").click()
    expect(card(page)).to_contain_text(lesson.seen)
    card(page).get_by_role("button", name="Leave").click()
    expect(page.get_by_text("Open in Matrices")).to_be_visible()


def test_a_lesson_is_presented_with_the_arrow_keys(page, server):
    visit(page, f"{server}/masks?lesson=local_then_atrous&present=1")
    expect(card(page)).to_contain_text("Step 1 of 4")
    expect(page.get_by_test_id("stSidebar")).not_to_be_visible()
    assert page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") > 16
    for place in (2, 3, 4):
        # The script that draws the board also handles the keys, so it has loaded after this line.
        expect(board(page, "masks.board")).to_be_visible(timeout=60_000)
        settle(page)
        page.keyboard.press("ArrowRight")
        expect(card(page)).to_contain_text(f"Step {place} of 4")
    settle(page)
    page.keyboard.press("ArrowLeft")
    expect(card(page)).to_contain_text("Step 3 of 4")
    settle(page)
    card(page).get_by_role("button", name="Show answer").click()
    assert re.match(r"Answer: [\d.]+%", answered(page))
    slider = page.get_by_test_id("stMain").get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowLeft")
    settle(page)
    expect(card(page)).to_contain_text("Step 3 of 4")


@pytest.mark.parametrize("height", [720, 900])
def test_the_menu_does_not_cover_the_heading_of_a_presented_page(page, server, height):
    page.set_viewport_size({"width": 1280, "height": height})
    visit(page, f"{server}/error?present=1")
    menu, heading = (page.get_by_test_id("stHeader").bounding_box(), page.locator("h1").first.bounding_box())
    assert menu["y"] + menu["height"] <= heading["y"]


def figure_in_view(page):
    """Return whether a figure, or the table that the step asks about, is in view next to the lesson's card."""
    return page.evaluate(
        """() => {
            const table = document.querySelector(".st-key-lesson [data-figure=table]");
            const kinds = table ? ["stDataFrame", "stTable"] : ["stBidiComponentRegular", "stBidiComponentIsolated"];
            const hosts = kinds.flatMap((kind) => [...document.querySelectorAll(`[data-testid=${kind}]`)]);
            const card = document.querySelector(".st-key-lesson").getBoundingClientRect();
            return hosts.some((host) => {
                if (host.shadowRoot?.querySelector(".strips, .thumbnails")) return false;
                const { top, bottom, height, left } = host.getBoundingClientRect();
                const seen = Math.min(bottom, innerHeight) - Math.max(top, 56);
                return height > 60 && left >= card.right && seen >= Math.min(height, 300) - 1;
            });
        }"""
    )


MEASURED = r"(?:It is|^Answer:) (\d[\d.,]*(?:%| \w+)?)(?<!\.)"
"""Pattern of the number in the text of an answer, with its unit. A chart's axis may show the number 100%."""
VISIBLE = """(page) => {
    const texts = [];
    const collect = (node) => {
        if (node.nodeType === Node.TEXT_NODE && node.parentElement?.checkVisibility({ visibilityProperty: true })) {
            texts.push(node.textContent.trim());
        }
        const nodes = [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes];
        nodes.filter((each) => !each.matches?.(".st-key-lesson, style")).forEach(collect);
    };
    collect(page);
    return texts.join("\\n").replaceAll("\\u00a0", " ");
}"""
"""JavaScript that returns the visible text of a page without the lesson's card, also inside boards and charts."""
AFTER_FIGURE = """(page) => {
    const isFigure = (element) => element.querySelector(".js-plotly-plot") || element.matches("[class*=-board]");
    const elements = [...page.querySelectorAll(".stElementContainer")].filter((each) => each.checkVisibility());
    const following = elements.slice(elements.findLastIndex(isFigure) + 1).filter((each) => !each.closest(".stColumn"));
    return following.map((each) => each.innerText.trim()).join("");
}"""
"""JavaScript that returns the visible text of a page after its last visible figure."""


@pytest.mark.parametrize("key", sorted(all_lessons()))
def test_a_class_sees_the_figure_of_each_step_before_and_after_its_answer(page, server, key):
    steps = all_lessons()[key].steps
    page.set_viewport_size({"width": 1280, "height": 720})
    visit(page, f"{server}/{steps[0].at}&lesson={key}&present=1", until=f"Step 1 of {len(steps)}")
    for place, step in enumerate(steps, 1):
        expect(card(page)).to_contain_text(f"Step {place} of {len(steps)}", timeout=60_000)
        expect(card(page)).to_contain_text(step.ask)
        settle(page)
        assert figure_in_view(page), f"step {place} before its answer"
        main = page.get_by_test_id("stMain")
        before = main.evaluate(VISIBLE)
        assert main.evaluate(AFTER_FIGURE) == "", f"step {place} before its answer"
        card(page).get_by_role("button", name="Show answer").click()
        *_, number = ["", *re.findall(MEASURED, answered(page))]
        shown = number not in ("", "100%") and re.search(rf"(?<![\d.,]){re.escape(number)}", before)
        assert not shown, f"step {place} shows its answer before it is asked for"
        settle(page)
        assert figure_in_view(page), f"step {place} with its answer"
        if place < len(steps):
            card(page).get_by_role("link", name="Next").click()
    expect(card(page).get_by_role("link", name="Next")).to_have_count(0)


@pytest.mark.parametrize("key", ["log_n"])
def test_a_lesson_about_a_sweep_waits_for_the_sweep(page, server, key):
    step = all_lessons()[key].steps[0]
    visit(page, f"{server}/{step.at}&lesson={key}", until="Step 1 of 3")
    card(page).get_by_role("button", name="Show answer").click()
    number = re.match(r"Answer: ([\d.]+) nats", answered(page))[1]
    pattern = re.compile(r"At 1,024 tokens, the weight is spread as widely as equal weights on ([\d,]+(?:\.\d+)?) keys")
    found = page.get_by_test_id("stMain").get_by_text(pattern)
    expect(found).to_be_visible()
    keys = float(pattern.search(found.inner_text())[1].replace(",", ""))
    assert keys == pytest.approx(math.exp(float(number)), rel=0.05)


def test_on_a_phone_the_question_stays_in_view_next_to_the_figure(phone, server):
    step = all_lessons()["softmax"].steps[0]
    visit(phone, f"{server}/{step.at}&lesson=softmax", until="Step 1 of 4")
    settle(phone)
    matrix = board(phone)
    matrix.scroll_into_view_if_needed()
    matrix.evaluate("(element) => element.scrollIntoView({ block: 'end' })")
    question, button = card(phone).locator(".ask"), card(phone).get_by_role("button", name="Show answer")
    expect(question).to_be_in_viewport(ratio=1)
    expect(button).to_be_in_viewport(ratio=1)
    button.click()
    assert answered(phone)
    settle(phone)
    for part in (".lesson-head", ".answer"):
        expect(card(phone).locator(part)).to_be_in_viewport(ratio=1)


def points(page):
    """Return the heights of the points on the canvas."""
    shown = card(page).locator("circle[role=slider]").all()
    return [float(each.get_attribute("aria-valuenow")) for each in shown]


def drawing(page, server):
    """Open the step that asks for a curve, and return its canvas."""
    step = all_lessons()["log_n"].steps[1]
    visit(page, f"{server}/{step.at}&lesson=log_n&lesson_step=2", until="Step 2 of 3")
    expect(card(page).locator("circle[role=slider]")).to_have_count(7)
    settle(page)
    return card(page).locator(".sketch svg")


def test_a_curve_is_drawn_with_the_mouse_and_the_keyboard_before_it_is_measured(page, server):
    canvas = drawing(page, server)
    check = card(page).get_by_role("button", name="Check")
    expect(check).to_be_disabled()
    scaled = page.locator(".js-plotly-plot .annotation").filter(
        has_text="log n scaling", has_not_text="changes nothing"
    )
    expect(scaled).to_have_count(0)
    expect(card(page).locator("polyline.measured")).to_have_count(0)
    start = points(page)
    page.mouse.move(*on(canvas, 0.12, 0.6))
    page.mouse.down()
    for part in range(1, 12):
        page.mouse.move(*on(canvas, 0.12 + 0.8 * part / 11, 0.6 - 0.3 * part / 11))
    page.mouse.up()
    drawn = points(page)
    assert drawn == sorted(drawn)
    assert drawn[0] < start[0] < drawn[-1]
    expect(check).to_be_enabled()
    settle(page)
    card(page).get_by_role("slider", name="tokens n 64").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageDown")
    moved = points(page)
    assert moved[2] == pytest.approx(drawn[2] + 0.1, abs=0.011)
    assert moved[3] == pytest.approx(drawn[3] - 0.5, abs=0.011)
    page.wait_for_timeout(500)  # After a key, the browser reports the curve with a delay.
    settle(page)
    assert points(page) == moved
    check.click()
    distance = (
        r"(Your curve is close: its average distance .* is [\d.]+ nats|On average, your curve is [\d.]+ nats from)"
    )
    assert re.match(distance, answered(page))
    expect(card(page).locator("polyline.measured")).to_have_count(1)
    expect(card(page).locator("polyline.drawn")).to_have_count(1)
    expect(card(page).locator("circle")).to_have_count(0)
    expect(scaled).to_have_count(1)


def test_a_curve_is_drawn_with_a_finger(phone, server):
    canvas = drawing(phone, server)
    canvas.scroll_into_view_if_needed()
    start = points(phone)
    phone.touchscreen.tap(*on(canvas, 0.93, 0.2))
    expect(card(phone).get_by_role("button", name="Check")).to_be_enabled()
    moved = points(phone)
    assert moved[:-1] == start[:-1]
    assert moved[-1] > start[-1]


def test_the_controls_of_a_page_appear_with_the_answer(page, server):
    step = all_lessons()["log_n"].steps[0]
    visit(page, f"{server}/{step.at}&lesson=log_n", until="Step 1 of 3")
    settle(page)
    main = page.get_by_test_id("stMain")
    for control in ("Share", "Settings", "Add or remove"):
        expect(main.get_by_role("button", name=control)).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_hidden()
    card(page).get_by_role("button", name="Show answer").click()
    assert answered(page)
    for control in ("Share", "Settings", "Add or remove"):
        expect(main.get_by_role("button", name=control)).to_be_visible()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()


def test_the_label_of_a_hidden_control_is_hidden_too(page, server):
    step = all_lessons()["convolution_and_gate"].steps[0]
    visit(page, f"{server}/{step.at}&lesson=convolution_and_gate", until="Step 1 of 4")
    settle(page)
    label = page.locator(".st-key-controls-task").get_by_text("Task", exact=True).first
    expect(label).to_be_hidden()
    card(page).get_by_role("button", name="Show answer").click()
    expect(label).to_be_visible()


def test_the_numbers_of_panels_appear_with_the_answer(page, server):
    step = all_lessons()["flat"].steps[3]
    visit(page, f"{server}/{step.at}&lesson=flat&lesson_step=4")
    caption = board(page, "matrices.board").locator(".caption").last
    expect(caption).to_contain_text("output error")
    expect(caption).to_be_hidden()
    card(page).get_by_role("button", name="Show answer").click()
    assert answered(page)
    expect(caption).to_be_visible()


def test_the_sliders_of_panels_appear_with_the_answer_except_that_of_an_animation(page, server):
    step = all_lessons()["local_then_atrous"].steps[2]
    visit(page, f"{server}/{step.at}&lesson=local_then_atrous&lesson_step=3")
    window, _stride, layers = board(page, "masks.board").get_by_role("slider", include_hidden=True).all()
    expect(layers).to_be_visible()
    expect(window).to_be_hidden()
    card(page).get_by_role("button", name="Show answer").click()
    assert answered(page)
    expect(window).to_be_visible()


def test_a_lesson_is_made_saved_and_opened_in_another_browser(page, other_page, server):
    visit(page, f"{server}/masks?input=synthetic&n=24&variants=softmax&variants=local~window~3")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Add this screen to a lesson").click()
    page.get_by_role("link", name="Edit your lesson (1 step)").click()
    expect(page.get_by_text("Make your own")).to_be_visible()
    settle(page)
    page.get_by_text("number on the page", exact=True).click()
    settle(page)
    number = page.get_by_label("Number", exact=True)
    number.press_sequentially("share of query", delay=50)
    number.press("Enter")
    settle(page)
    asked = page.get_by_label("Question", exact=True)
    expect(asked).to_be_visible()
    settle(page)
    asked.fill("How many pairs may look?")
    asked.press("Enter")
    expect(page.get_by_role("button", name="1. Masks · How many pairs may look?")).to_be_visible()
    settle(page)
    file = saved(page, "Download lesson")
    assert 'ask = "How many pairs may look?"' in file.read_text("utf-8")

    visit(other_page, f"{server}/lessons")
    other_page.get_by_text("Open a lesson file").click()
    other_page.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(
        {"name": "own.toml", "mimeType": "text/plain", "buffer": file.read_bytes()}
    )
    other_page.get_by_role("button", name="Begin").click()
    expect(card(other_page)).to_contain_text("How many pairs may look?")
    expect(board(other_page, "masks.board")).to_be_visible(timeout=60_000)
    settle(other_page)
    card(other_page).get_by_role("button", name="Show answer").click()
    number = re.match(r"Answer: ([\d.]+)%", answered(other_page))[1]
    sentence = other_page.get_by_test_id("stMain").get_by_text(re.compile(r"% of (?:the )?pairs"))
    expect(sentence.filter(has_text=f"{number}%").first).to_be_visible()
