"""Story of softmax written as a delta rule: the step size 1/t, and where it leaves the stable range."""

import numpy as np

from app.words.i18n import _, _n, paragraph
from attention_core.formatting import number
from pages.inside import pictures
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: step sizes with their cap, and comparison with the reference."""
    ending = _(
        "{share:.0%} of its weights are negative; every row sums to 1.", share=(seen.weights[seen.visible] < 0).mean()
    )
    return _steps(seen), beside_reference(seen, ending)


def _steps(seen: Seen) -> Step:
    square = (seen.parts["keys"] ** 2).sum(-1)
    free, held = (square * seen.parts[name][:, 0] for name in ("uncapped", "strength"))
    cap = seen.setting("cap")

    def draw(key: str) -> None:
        pictures.bars(
            {"‖c‖²/t": free, "β‖c‖²": held},
            seen.labels,
            key=key,
            x_title=_("token"),
            y_title=_("share taken back"),
            alt=_("Bars: how much a step of 1/t takes back of what each key reads, and how much with the cap"),
        )

    return Step(
        title=_("Steps of 1/t"),
        formula=r"\beta_t = \min\left(\tfrac{1}{t},\; \frac{b}{\lVert c_t \rVert^2}\right),\qquad "
        r"\lambda_t = 1 - \tfrac{1}{t} - \beta_t \lVert c_t \rVert^2,\qquad b = " + f"{cap:g}",
        shapes={"c": seen.parts["keys"].shape},
        sentence=steps_sentence(free, seen.token(free.argmax()), cap),
        draw=draw,
    )


def steps_sentence(free: np.ndarray, most: str, cap: float) -> str:
    """Return the sentence about which steps of 1/t leave the stable range, and the effect of the cap.

    Args:
        free: ``‖c‖²/t`` of each token.
        most: the token with the largest ``free``.
        cap: the largest step that is allowed.
    """
    # A step is unstable where λ = 1 - 1/t - ‖c‖²/t is below -1.
    beyond = int((free > 2 - 1 / np.arange(1, len(free) + 1)).sum())
    text = _n(
        "Uncapped, one of {total} steps leaves the stable range: at “{most}” it would take back {largest}× what "
        "its key reads, where 2 − 1/t is the most that does not grow.",
        "Uncapped, {n} of {total} steps leave the stable range: at “{most}” one would take back {largest}× what "
        "its key reads, where 2 − 1/t is the most that does not grow.",
        n=beyond,
        total=len(free),
        most=most,
        largest=number(free.max()),
    )
    if not beyond:
        text = _(
            "Steps of 1/t stay within the stable range on this head: at “{most}” one takes back most, {largest}× "
            "what its key reads.",
            most=most,
            largest=number(free.max()),
        )
    return paragraph(
        text,
        _n(
            "The cap of {cap} shortens one step. Nothing here is trained.",
            "The cap of {cap} shortens {n} steps. Nothing here is trained.",
            n=int((free > cap).sum()),
            cap=cap,
        ),
    )
