"""Sentences and formulas of the State chapter of the Causal page, about the numbers that a recurrent variant stores."""

from collections.abc import Sequence

import numpy as np

from app.words.finding import Finding
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from attention_core.analysis.low_rank.factors import lengths
from attention_core.analysis.state.recurrent_state import StateHistory
from attention_core.formatting import formatted, number, percent

SUMS = (
    r"S_i = \gamma S_{i-1} + \varphi(k_i)\, v_i^\top,\qquad z_i = \gamma z_{i-1} + \varphi(k_i),\qquad "
    r"o_i = \frac{\varphi(q_i)^\top S_i}{\varphi(q_i)^\top z_i}",
    N_(
        "- φ is the feature map, S is the state, and z is the sum of the key features.\n- γ is 1 for all variants "
        "except retention. The state of retention decays, so it stops growing after about 1 / (1 − γ) tokens.\n- The "
        "variant's own decoder computes the state in float64. Some decoders divide exponentials by a factor, so that "
        "they do not overflow. To match the formula, the state shown here is multiplied by this factor, which undoes "
        "the division.\n- The decoder and the n × n matrix give the same output. The error of the variant is the "
        "distance between this output and the output of softmax.\n- The strength of a colour grows with the square "
        "root of an entry's absolute value. As the state grows, the ends of the colour scale and of the axis of z "
        "double from time to time."
    ),
)
"""Formula of variants that keep running sums, and the notes on their pictures."""
FAST_WEIGHTS = (
    r"S_i = D_i S_{i-1} - \varepsilon_i k_i \left(k_i^\top D_i S_{i-1}\right) + \beta_i k_i v_i^\top,\qquad "
    r"D_i = \operatorname{diag}(\alpha_i),\qquad o_i = S_i^\top q_i",
    N_(
        "- S is the state. Each entry of the keys is a channel and corresponds to one row of S.\n"
        "- Before a token is written, each channel loses a share of 1 − α to decay. Without a gate, α is 1.\n"
        "- β is the strength of writing, and ε is the strength of erasing. If a rule erases nothing, ε is 0. PaTH "
        "erases along its own directions w instead of the keys k.\n"
        "- The new state is the sum of the previous state and the decayed, erased and written parts. Each part is "
        "shown with its sign.\n"
        "- The variant “Softmax as delta rule” subtracts the running means from keys and values. It stores these "
        "means in addition to S and adds the mean value to its output.\n"
        "- The variant's own decoder computes the state in float64. The decoder and the n × n matrix give the same "
        "output. The error of the variant is the distance between this output and the output of softmax.\n"
        "- The strength of a colour grows with the square root of an entry's absolute value. As the state grows, the "
        "ends of the colour scale and of the axis of the channel norms double from time to time."
    ),
)
"""Formula of variants with fast weights, and the notes on their pictures."""


def state_size(history: StateHistory, name: str) -> Finding:
    """Return the size of the state of the named variant, and the length from which a key-value cache is larger."""
    per_token, matrix = history.kv_cache.shape[1], history.sums[0].size
    values = {"sums": matrix, "rest": history.state_size - matrix}
    parts = ""
    if history.keys is not None:
        parts = _(
            "Matrix S has {sums:,} of these numbers, and z, which gives the divisor of the output, has {rest:,}.",
            **values,
        )
    elif values["rest"]:
        parts = _("Matrix S has {sums:,} of these numbers, and {rest:,} are running means.", **values)
    return Finding(
        paragraph(
            _(
                "**{name} merges all tokens into a state of {size:,} numbers. From {n:,} tokens on, softmax's "
                "key-value cache is larger.**",
                name=escape_markdown(name),
                size=history.state_size,
                n=history.state_size // per_token + 1,
            ),
            parts,
        ),
        _(
            "Each new token adds {each:,} numbers to softmax's key-value cache. The state keeps its size: only its "
            "entries change.",
            each=per_token,
        ),
    )


def output_distance(history: StateHistory, i: int, labels: Sequence[str], name: str) -> str:
    """Return the distance of the output of token i from other outputs."""
    return paragraph(
        _n(
            "{name} has read {n} token: “{token}”.",
            "{name} has read {n} tokens, up to “{token}”.",
            n=i + 1,
            name=escape_markdown(name),
            token=escape_markdown(labels[i]),
        ),
        error_text(history.softmax_error(i), history.uniform_error(i)),
    )


def error_text(error: float, uniform: float) -> str:
    """Return an output error and its relation to the error of equal weights for all tokens so far."""
    values = {"error": formatted(error, ".0%"), "uniform": formatted(uniform, ".0%")}
    text = N_("Its output error for this token is {error}, more than with equal weights ({uniform}).")
    if values["error"] == values["uniform"]:
        text = N_("Its output error for this token is {error}, the same as with equal weights.")
    elif error < uniform:
        text = N_("Its output error for this token is {error}, less than with equal weights ({uniform}).")
    return paragraph(_(text, **values), _("An output of zero would have an error of 100%.") if error > 1 else "")


def state_change(history: StateHistory, i: int) -> str:
    """Return what token i decays, erases and writes in fast weights; empty for running sums."""
    if history.changes is None:
        return ""
    written = _length(history.added[i])
    if not i:
        return _("The first token adds a matrix of norm {written} to an empty state.", written=written)
    before, now = (_length(state) for state in (history.state_before(i), history.sums[i]))
    erased_text = ""
    if history.changes.erased_shares is not None:
        share = history.changes.erased_shares[i]
        erased_text = erasure_text(share, _length(history.erase_change(i)), along=history.changes.along)
    return paragraph(
        decay_text(history.changes.decay_shares[i]),
        erased_text,
        _(
            "The token adds a matrix of norm {written} to the state. The norm of the state, ‖S‖, changes from "
            "{before} to {now}.",
            written=written,
            before=before,
            now=now,
        ),
    )


def _length(change: np.ndarray) -> str:
    return number(lengths(change[None]).item())


def erasure_text(share: float, erased: str, *, along: bool) -> str:
    """Return how much of a value a token erases.

    Args:
        share: share of the value that the token erases.
        erased: norm of the change of the state.
        along: whether the value is that of the direction w instead of the token's key.
    """
    if share == 0:
        return _("The token erases nothing.")
    return paragraph(
        _("The state returns a value for the direction w, along which the token erases.")
        if along
        else _("The state returns a value for the token's key."),
        _("The token reverses this value, which changes the state by a matrix of norm {erased}.", erased=erased)
        if share == 2
        else _(
            "The token erases **{share}** of this value, which changes the state by a matrix of norm {erased}.",
            share=percent(share),
            erased=erased,
        ),
    )


def decay_text(shares: np.ndarray) -> str:
    """Return how much of a state decays, given the decaying share of each channel."""
    if not shares.any():
        return _("The previous state does not decay.")
    low, high = percent(shares.min()), percent(shares.max())
    if low == high:
        return _("At this token, **{share}** of the previous state is lost to decay.", share=low)
    return _(
        "At this token, **{low} to {high}** of the previous state is lost to decay, depending on the channel.",
        low=low,
        high=high,
    )


def notes(history: StateHistory, n: int, head: int, *, averaged: bool) -> str:
    """Return the notes on differences between the pictures and the computed state.

    Args:
        history: states after each token.
        n: tokens of the input.
        head: index of the head shown.
        averaged: whether the average of all heads is chosen on the other pages.
    """
    return paragraph(
        _("Head {head} is shown, because each head has its own state.", head=head) if averaged else "",
        _(
            "Each state holds {size:,} numbers, so only the first {shown} of {n} tokens are shown.",
            size=history.state_size,
            shown=len(history.sums),
            n=n,
        )
        if len(history.sums) < n
        else "",
        _("S and z are shown in units of e^{power:.0f}.", power=history.log_unit) if history.log_unit else "",
    )
