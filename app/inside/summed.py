"""What one query of linear attention finds summed up, and how it reads it."""

import streamlit as st

from app.inside import pictures
from app.text import _
from attention_core.looks.running_sum import Sum


def draw_reading(found: Sum, key: str) -> None:
    """The query's features, the keys' sum they divide by, and what comes out."""
    feature = _("feature")
    parts = (
        ("φ(q)", found.feature, feature, _("Bars: the features of the query")),
        ("z = Σ φ(k)", found.keys, feature, _("Bars: the sum of the keys' features")),
        ("φ(q)ᵀ S / φ(q)ᵀ z", found.output, _("entry of the output"), _("Bars: the output of the query")),
    )
    for place, (column, (name, values, title, alt)) in enumerate(zip(st.columns(3), parts, strict=True)):
        with column:
            pictures.bars(
                {name: values},
                [str(i) for i in range(len(values))],
                key=f"{key}.read.{place}",
                x_title=title,
                y_title=name,
                alt=alt,
                height=260,
            )
