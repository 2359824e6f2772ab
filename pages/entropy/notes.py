"""What stands below the Entropy page's charts: how things are measured, and what to take away."""

import pprint
from collections.abc import Sequence

import streamlit as st

from app import takeaway
from app.text import _
from attention_core.experiments.task import Row
from attention_core.inputs.source import SyntheticSource, TextSource, UploadSource
from pages.entropy.options import Question

UNITS = {"entropy": "entropy (nats)"}
"""Columns whose name needs a unit in a file."""


def entropy(question: Question) -> None:
    """How entropy is defined, here and for rows that are no probabilities."""
    with st.expander(_("How it is measured"), icon=":material/function:"):
        st.latex(r"H_i = -\sum_j p_{ij}\log p_{ij},\qquad p_{ij} = \frac{|A_{ij}|}{\sum_l |A_{il}|}")
        st.markdown(
            _(
                "- **0** where a query looks at one key, **log n** where it looks at all alike; *exp H* is how many "
                "equally weighted keys have the same entropy.\n"
                "- **Signed or unnormalised rows** are measured by their absolute values, scaled to sum to one; so "
                "neither signs nor a row's total count. A row of zeros has 0.\n"
                "- A head's value is the mean over its queries. The line is the median (or mean) over heads and seeds, "
                "the band their quartiles.\n"
                "- **H / log n** divides each query's entropy by the logarithm of the keys it may see.\n"
                "- **Slope**: least squares of H on log n through the line, both in nats. 1: attention dilutes as fast "
                "as looking everywhere alike; 0: not at all."
            )
            + "\n- "
            + _lengths(question)
        )


def normalizer(question: Question) -> None:
    """What Z is and how its exponent is fitted."""
    with st.expander(_("How it is measured"), icon=":material/function:"):
        st.latex(
            r"Z_i = \sum_j e^{x_{ij}}\quad\text{or}\quad Z_i = \sum_j \operatorname{relu}(x_{ij})^2,"
            r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}"
        )
        st.markdown(
            _(
                "- Logits are taken as they stand, no maximum subtracted: with all logits zero softmax's Z is n.\n"
                "- Sums are taken in log space. A head's Z is the geometric mean over its queries; a query whose Z is "
                "0 (squared ReLU without a positive logit) is left out, and their share is in the table.\n"
                "- Drawn is Z(n) over the same head's Z at the shortest length; line and band are over heads and "
                "seeds.\n"
                "- **Exponent** a: least squares of log Z on log n through the line, Z ~ nᵃ. Where a < 1, dividing by "
                "n divides by too much."
            )
            + "\n- "
            + _lengths(question)
        )


def drift(question: Question) -> None:
    """What drifts, and why a factor that stays does not count."""
    with st.expander(_("How it is measured"), icon=":material/function:"):
        st.latex(
            r"A_{ij} = \frac{\operatorname{relu}(x_{ij})^2}{Z_i},\qquad Z_i = n_i,\quad n_i^2,\quad "
            r"\text{a constant}\quad\text{or}\quad \textstyle\sum_l \operatorname{relu}(x_{il})^2,"
            r"\qquad x_{ij} = \frac{q_i\cdot k_j}{\sqrt d}"
        )
        st.markdown(
            _(
                "- A factor that stays is learned away in training, so every head is measured against itself at n₀. "
                "The constant may be any number; n² is (relu(x) / n)².\n"
                "- **Row total**: mean over queries of a row's sum; a row without a positive logit sums to 0. "
                "**Output size**: root mean square over queries of the length of A v. It may shrink though rows "
                "keep their total, as values that differ cancel in a mean of more of them.\n"
                "- Queries, keys and values are those of the source at each length, not of a model trained with this "
                "attention. Line and band are over heads and seeds."
            )
            + "\n- "
            + _lengths(question)
        )


def distance() -> None:
    """What RoPE does to a product, and what bounds it."""
    with st.expander(_("How it is measured"), icon=":material/function:"):
        st.latex(
            r"q_i\cdot k_j = \operatorname{Re}\sum_{p<d/2} h_p\, e^{\mathrm{i}(i-j)\theta_p},\qquad "
            r"\theta_p = \text{base}^{-2p/d},\qquad "
            r"|q_i\cdot k_j| \le \max_p |h_{p+1}-h_p| \sum_{p=1}^{d/2} |S_p|,\quad "
            r"S_p = \sum_{r<p} e^{\mathrm{i}(i-j)\theta_r}"
        )
        st.markdown(
            _(
                "- RoPE turns pair p of every query and key by its position times θ; h is the pair's product before, "
                "as complex numbers, and 0 beyond the last. Sizes of queries and keys do not change.\n"
                "- What [the article](https://kexue.fm/archives/8265) shows to fall with distance is the mean of the "
                "|S|, and so a **bound**: products of "
                "random queries and keys, whose mean is 0 at any distance, have nothing that could fall.\n"
                "- Drawn is each head's mean over all pairs of tokens that far apart of which one may see the other, "
                "up to three quarters of n; line and band are over heads and seeds. *Next door* is one token away, "
                "*beyond n / 2* the mean over the distances drawn there."
            )
        )


def homogeneity(n: int) -> None:
    """Why squared ReLU does not notice the factor, and what the power does in its place."""
    with st.expander(_("Why"), icon=":material/function:"):
        st.latex(
            r"\frac{\operatorname{relu}(\lambda x_{ij})^2}{\sum_l \operatorname{relu}(\lambda x_{il})^2}"
            r"= \frac{\lambda^2\operatorname{relu}(x_{ij})^2}{\lambda^2\sum_l \operatorname{relu}(x_{il})^2}"
            r"\qquad\text{but}\qquad \frac{e^{\lambda x_{ij}}}{\sum_l e^{\lambda x_{il}}} = "
            r"\frac{(e^{x_{ij}})^\lambda}{\sum_l (e^{x_{il}})^\lambda}"
        )
        st.markdown(
            _(
                "Squared ReLU is homogeneous: a factor on the logits leaves the sum as λ² and cancels, so no "
                "temperature and no log n scale can sharpen it. Divided by the length instead, its weights grow with "
                "λ², all alike: the output grows, what is looked at stays. Measured on the first {n} tokens.",
                n=n,
            )
            + "\n\n"
            + _(
                "The same holds for every other power p: λᵖ cancels. The power itself is what sharpens: relu(x)ᵖ = "
                "exp(p log x) where x > 0, so a row is softmax of its positive logits' logarithms, with p in the place "
                "of 1 / temperature, and a higher power never makes it more even."
            )
        )


def _lengths(question: Question) -> str:
    if isinstance(question.source, SyntheticSource):
        told = _("Each length is a new sequence of the same kind and seed.")
    elif isinstance(question.source, TextSource) and not question.record.causal:
        told = _("The model reads both ways, so each length is the text's beginning read as a text of its own.")
    else:
        told = _("Each length is the beginning of the same queries and keys; in a causal model that is exact.")
    if question.causal:
        told += " " + _("While causal is on, query i sees i + 1 keys, so a head's mean holds short rows and long ones.")
    return told


def take_away(rows: Sequence[Row], question: Question, experiment: str, *given: object, **settings: object) -> None:
    """The rows as a table, and the Python that measures them again."""
    with st.expander(_("Take away"), icon=":material/download:"):
        takeaway.download(
            _("Numbers (CSV)"),
            lambda: takeaway.to_csv([UNITS.get(name, name) for name in rows[0]], [list(row.values()) for row in rows]),
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
