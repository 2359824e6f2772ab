"""What is said of timing runs: one sentence, the stamps, and how it is measured."""

from collections.abc import Sequence

import streamlit as st

from app.text import _, literal
from app.timing.options import forms
from app.timing.series import Series
from attention_core.experiments.timing_length import unfinished
from attention_core.measure.records import Run
from attention_core.measure.summary import TAIL, Ratio, crossing
from attention_core.writing import read_off


def in_one_sentence(found: Sequence[Series]) -> str:
    """Who overtakes softmax where, of one run."""
    where: dict[str, list[tuple[float, str]]] = {}
    for line in found:
        at = None if line.is_reference or line.masked else crossing(line.ratios)
        if at is not None:
            where.setdefault(at.where, []).append((at.tokens, f"**{literal(line.name)}**"))
    machine = _("On this machine") if found[0].live else _("On {device}", device=literal(found[0].run.stamp.device))
    told = []
    if below := where.get("below"):
        told.append(_("faster than softmax from {n:,} tokens on: {names}", names=_names(below), n=round(below[0][0])))
    if crossed := sorted(where.get("at", [])):
        names = ", ".join(_("{name} at {n} tokens", name=name, n=read_off(n)) for n, name in crossed)
        told.append(_("overtaking softmax: {names}", names=names))
    if even := where.get("even"):
        told.append(_("no clear difference at the longest length: {names}", names=_names(even)))
    if beyond := where.get("beyond"):
        told.append(_("slower at the longest length measured: {names}", names=_names(beyond)))
    if not told:
        return _("Add a variant to see from which length on it is faster than softmax.")
    missing = so_far(found[0].run)
    if not missing:
        return f"{machine}, " + "; ".join(told) + "."
    return f"{machine}, " + _("so far") + ", " + "; ".join(told) + f". {missing}"


def so_far(run: Run) -> str:
    """What is missing from a run; empty where nothing is."""
    found = unfinished(run)
    if found is None:
        return ""
    if found.rounds:
        return _("The run is not complete: {count} of {all} rounds are there.", count=found.rounds, all=run.spec.rounds)
    if found.tokens is None:
        return _("The run is not complete: not every variant has been measured even at the shortest length.")
    return _(
        "The run is not complete: only up to {n:,} of {longest:,} tokens has every variant been measured.",
        n=found.tokens,
        longest=run.spec.sizes[-1],
    )


def masking(found: Sequence[Series]) -> str:
    """What a mask on the full matrix takes beside its variant's own algorithm, of one run; empty without one."""
    for line in found:
        own = next((other for other in found if line.masked and other.word == line.masked.plain.word), None)
        both = {r.n: r for r in own.ratios} if own else {}
        at = [r for r in line.ratios if r.n in both]
        if line.masked and own and at:
            return beside_own(own.name, forms()[line.masked.form], at[-1], both[at[-1].n])
    return ""


def beside_own(name: str, form: str, masked: Ratio, own: Ratio) -> str:
    """A mask on the full matrix beside the algorithm that computes only what the mask shows.

    Args:
        name: the variant's.
        form: how the mask is laid on.
        masked: its time over softmax's.
        own: the same of the variant's own algorithm, at the same length.
    """
    if masked.high < 1:
        told = _("**Here even a mask saves time:**")
    elif masked.low < 1:  # the quartiles lie on both sides of one
        told = _("**Whether a mask saves time cannot be told here:**")
    else:
        told = _("**A mask saves nothing:**")
    return (
        told
        + " "
        + _(
            "that of {name}, laid on the full matrix ({form}), takes {masked:.2g} times softmax's time at {n:,} "
            "tokens; the pattern's own algorithm takes {own:.2g} times.",
            name=literal(name),
            form=form,
            masked=masked.middle,
            n=masked.n,
            own=own.middle,
        )
    )


def _names(items: Sequence[tuple[float, str]]) -> str:
    return ", ".join(name for _n, name in items)


def told(line: Series) -> str:
    """Where a variant overtakes softmax, in the table's words."""
    at = crossing(line.ratios)
    if at is None:
        return ""
    where = {
        "at": _("{n} tokens", n=read_off(at.tokens)),
        "below": _("below {n:,}", n=round(at.tokens)),
        "beyond": _("not within the measured lengths"),
        "even": _("no clear difference"),
    }[at.where]
    return where if unfinished(line.run) is None else _("{where}, so far", where=where)


def stamp_lines(run: Run, *, live: bool) -> list[str]:
    """Where, how and when a run was measured, in lines that fit a narrow figure."""
    at, spec = run.stamp, run.spec
    mode = {"forward": _("forward"), "backward": _("forward + backward"), "decode": _("decode step")}[spec.mode]
    return [
        f"{_('solid, live') if live else _('dashed, recorded')}: {at.device}",
        *([] if at.device == at.cpu else [_("host: {cpu}", cpu=at.cpu)]),
        _("{threads} of {cores} cores · torch {torch}", threads=at.threads, cores=at.cores, torch=at.torch),
        f"{mode}{_(', causal') if spec.causal else ''} · {spec.dtype} · B 1, H {spec.heads}, d {spec.head_size}",
        at.date.replace("T", " ").replace("Z", " UTC"),
    ]


def show_method() -> None:
    """How it is measured."""
    with st.popover(_("How it is measured"), icon=":material/menu_book:", type="tertiary"):
        st.markdown(
            _(
                "**Order.** Every round visits all lengths and, at each, all variants, forwards and backwards in turn: "
                "whatever slows the machine down slows all of them down alike. Each is called once untimed before its "
                "first sample, short calls before every one; a sample of a short call is the mean of several.\n\n"
                "**Time.** Lines are medians over the rounds, bands the quartiles. Ratios to softmax are taken within "
                "each round. On CUDA, events on the device are read after synchronising.\n\n"
                "**Softmax** is torch's fused kernel, the one to beat; a decode step of it is one query against a "
                "cache of n keys and values.\n\n"
                "**Mask on the full matrix** (dotted): every pair is computed and a mask, made beforehand, hides some. "
                "Either the fused kernel that runs softmax is handed the mask, or the n × n scores are made, hidden "
                "and made to sum to one. What would hold too many of these is left out.\n\n"
                "**Growth.** The exponent is the slope through the {tail} longest lengths on two logarithmic axes; R² "
                "says how straight they lie. *Faster from*: from there on every measured ratio is below one, read off "
                "the line between two lengths; *no clear difference* where the quartiles lie on both sides of one.\n\n"
                "**Memory.** Most bytes alive at once beyond the inputs: on the CPU counted tensor by tensor, where "
                "what a kernel holds inside itself is not seen; on CUDA the allocator's own peak.",
                tail=TAIL,
            )
        )
