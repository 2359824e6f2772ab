"""A browser test of the style sheet's cost: if an element is added to a chart, the browser restyles few other elements.

The browser checks rules with ``:has`` whenever an element is added. If one of these rules can apply to half of the
page, each label that Plotly adds to measure its size costs milliseconds.
"""

import json

import pytest
from browser import settle, visit

LABELS = 20
MEASURED = f"""() => {{
    const drawing = document.querySelector(".js-plotly-plot .main-svg");
    for (let i = 0; i < {LABELS}; i++) {{
        const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
        label.textContent = i;
        drawing.append(label);
        label.getBoundingClientRect();
        label.remove();
        drawing.getBoundingClientRect();
    }}
}}"""
"""JavaScript that adds labels to a chart, measures and removes them, as Plotly does."""


@pytest.mark.parametrize("path", ["timing", "entropy?input=synthetic&h_longest=128&h_seeds=1"])
def test_a_label_of_a_chart_leaves_the_style_of_other_elements(page, server, chromium, path):
    visit(page, f"{server}/{path}")
    settle(page)
    chromium.start_tracing(page=page, categories=["devtools.timeline"])
    page.evaluate(MEASURED)
    events = json.loads(chromium.stop_tracing())["traceEvents"]
    styled = [
        each["args"]["elementCount"] for each in events if each["name"] == "UpdateLayoutTree" and each["ph"] != "B"
    ]
    assert len(styled) >= 2 * LABELS, "each label is measured, and then the drawing without it"
    assert sum(styled) / len(styled) < 50, "of about a thousand elements"
