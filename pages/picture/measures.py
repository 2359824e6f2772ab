"""The numbers of the Picture page that a lesson can ask about, such as the PSNR of a denoised image."""

import attention_core as ac
from app.jobs import cached
from app.lessons.screen import Screen
from app.measures import VariantMeasure
from app.words.i18n import N_
from attention_core.inputs.image_source import ImageSource


def _psnr(screen: Screen, attention: ac.Attention) -> float | None:
    source = screen.chosen.source
    return cached.denoised(source, attention).psnr if isinstance(source, ImageSource) else None


MEASURES = {
    "psnr": VariantMeasure(
        N_("peak signal-to-noise ratio (PSNR) of the image that {name} returns"),
        _psnr,
        unit=N_("dB"),
        high=40,
        step=0.5,
        digits=1,
        tolerance=1,
        missing_message=N_(
            "The digit on this screen has no added noise, so there is no PSNR to measure. Choose a photograph instead."
        ),
    )
}
