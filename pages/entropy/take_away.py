"""The downloads and code of the Entropy page's views, and the note on the sequences of other lengths."""

import pprint
from collections.abc import Sequence

from app.ui import export
from app.ui.lazy import lazy_expander
from app.words.i18n import _, paragraph, sentence
from attention_core.experiments.task import OfHead
from pages.entropy.options import Question


def how_lengths_are_made(question: Question) -> str:
    """Return how the sequences of other lengths are made."""
    return paragraph(
        sentence(question.source.lengths_notice(question.record)),
        _("While causal is on, query i sees i + 1 keys, so a head's mean holds short rows and long ones.")
        if question.causal
        else "",
    )


def take_away(rows: Sequence[OfHead], question: Question, experiment: str, *given: object, **settings: object) -> None:
    """Draw the download of the rows as CSV, and the Python code that measures them again."""
    settings = settings or {"longest": question.longest, "seeds": question.seeds}

    def draw() -> None:
        own = question.of_heads(rows)
        export.download(_("Numbers (CSV)"), lambda: export.csv_of(own, entropy="nats"), f"{experiment}.csv")
        words = "".join(f", {pprint.pformat(value, width=100)}" for value in given)
        words += "".join(f", {name}={value!r}" for name, value in settings.items())
        only = "" if question.head is None else f" if row.head == {question.head}"
        export.snippet(
            "import attention_core as ac\n"
            f"from attention_core.experiments import {experiment}\n\n"
            f"source = {question.source.code}\n"
            f"tasks = {experiment}.tasks(source{words}, causal={question.causal})\n"
            f"rows = [row for task in tasks for row in {experiment}.run(task){only}]\n"
        )

    lazy_expander(_("Take away"), draw, key="entropy.files", icon=":material/download:")
