"""A view's rows to take away, Python that measures them again, and where sequences of other lengths come from."""

import pprint
from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import takeaway
from app.text import _
from attention_core.inputs.source import SyntheticSource, TextSource, UploadSource
from pages.entropy.options import Question


def how_lengths_are_made(question: Question) -> str:
    """Where the sequences of other lengths come from."""
    if isinstance(question.source, SyntheticSource):
        told = _("Each length is a new sequence of the same kind and seed.")
    elif isinstance(question.source, TextSource) and not question.record.causal:
        told = _("The model reads both ways, so each length is the text's beginning read as a text of its own.")
    else:
        told = _("Each length is the beginning of the same queries and keys; in a causal model that is exact.")
    if question.causal:
        told += " " + _("While causal is on, query i sees i + 1 keys, so a head's mean holds short rows and long ones.")
    return told


def take_away(rows: Sequence[Any], question: Question, experiment: str, *given: object, **settings: object) -> None:
    """The rows as a table, and the Python that measures them again."""
    with st.expander(_("Take away"), icon=":material/download:"):
        takeaway.download(
            _("Numbers (CSV)"),
            lambda: takeaway.csv_of(rows, entropy="nats"),
            f"{experiment}.csv",
            "text/csv",
            f"entropy.csv.{experiment}",
        )
        if not settings:
            settings = {"longest": question.longest, "seeds": question.seeds}
        words = "".join(f", {pprint.pformat(value, width=100)}" for value in given)
        words += "".join(f", {name}={value!r}" for name, value in settings.items())
        takeaway.snippet(
            "import attention_core as ac\n"
            f"from attention_core.experiments import {experiment}\n\n"
            f"source = {_source(question)}\n"
            f"tasks = {experiment}.tasks(source{words}, causal={question.causal})\n"
            f"rows = [row for task in tasks for row in {experiment}.run(task)]\n"
        )


def _source(question: Question) -> str:
    source = question.source
    if isinstance(source, UploadSource):
        return f'ac.inputs.UploadSource.of({source.name!r}, open("your-file.npz", "rb").read())'
    if isinstance(source, SyntheticSource):
        return "ac.inputs.SyntheticSource(ac.inputs." + repr(source.spec) + ")"
    return "ac.inputs." + repr(source)
