"""The view of the PSNR of the denoised image over each variant's budget."""

import streamlit as st

import attention_core as ac
from app.figures.lines.curves import Curve, curves, guide
from app.jobs import cached
from app.state.session import REFERENCE
from app.ui import chart, palette
from app.words.i18n import _
from app.words.labels import readable
from attention_core.analysis.denoised_image import box_blur, judge, mean_image
from attention_core.experiments.denoising import budgets, columns_of
from pages.picture.photo import Found
from pages.picture.subject import name

HEIGHT = 400


def show(found: Found) -> None:
    """Draw one line per variant over its budget, and level lines for simpler methods and variants without a budget."""
    source = found.source
    with cached.spinner(_("Computing every budget …")):
        lines = [line for attention in found.variants if (line := _line(found, attention))]
    ends = (min([x for line in lines for x in line.x] or [1.0]), max([x for line in lines for x in line.x] or [1.0]))
    noisy, clean = source.noisy(), source.clean()
    blurred = judge(box_blur(noisy), clean, mean_image(noisy)).psnr
    for attention, image in found.variants.items():
        if attention.variant.budget is None:
            title = _("Softmax = non-local means") if attention.key == REFERENCE else name(attention)
            lines.append(Curve(title, ends, [image.psnr] * 2, colour=palette.place(attention.key), marks=False))
    for level, psnr in (
        (_("noisy image"), found.noisy.psnr),
        (_("blur with 3 × 3 pixels"), blurred),
        (_("mean of all pixels"), found.mean.psnr),
    ):
        lines.append(guide(level, ends, (psnr, psnr)))
    figure = curves(
        lines, x_title=_("budget: each variant's own setting"), y_title=_("PSNR in dB"), height=HEIGHT, log_x=True
    )
    chart.show(
        figure, key="picture.budget", name="picture-budget", alt=_("PSNR of the image over each variant's budget")
    )
    st.caption(_("Higher lines are closer to the image without noise. Budgets have different units, such as keys."))


def _line(found: Found, attention: ac.Attention) -> Curve | None:
    budget = attention.variant.budget
    if budget is None:
        return None
    x, y = [], []
    for each in budgets(attention, found.source.size**2):
        if (value := getattr(each.params, budget.name)) > 0:  # a logarithmic axis cannot show zero
            x.append(float(value) * (found.source.size**2 if budget.kind == "float" else 1))
            y.append(cached.denoised(found.source, each).psnr)
    square = bool(columns_of(attention))
    short = _("{name} (square)", name=_(attention.title)) if square else _(attention.title)
    title = f"{short} · {readable(budget.name)}{' × n' if budget.kind == 'float' else ''}"
    return Curve(title, x, y, colour=palette.place(attention.key), label=short, dash="dash" if square else "solid")
