"""Story of gated linear attention: how long each channel remembers, and how decay changes query-key products."""

import numpy as np

from app.words.i18n import N_, _, escape_markdown, paragraph
from attention_core.analysis.low_rank.factors import half_lives, lengths, product, remaining_share
from attention_core.formatting import number, percent
from pages.inside import pictures
from pages.inside.pictures import Curve
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step, later


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: gates, what remains of each token, products after decay, comparison with the reference."""
    return _gates(seen), _left(seen), _read(seen), beside_reference(seen)


def alike(kept: np.ndarray) -> bool:
    """Return True if every token keeps the same share of all channels, ``[n, C]``."""
    return bool((kept == kept[:, :1]).all())


def _gates(seen: Seen) -> Step:
    kept = seen.parts["kept"]
    return Step(
        title=_("What each token keeps"),
        formula=r"S_i = \operatorname{diag}(\alpha_i)\, S_{i-1} + \beta_i k_i v_i^\top",
        shapes={r"\alpha": kept.shape, "S": (kept.shape[1], seen.qkv.v.shape[-1])},
        sentence=gates_sentence(kept, seen.labels),
        draw=lambda key: pictures.board(
            key,
            pictures.panel(_("1 − α: what fades"), 1 - kept, seen.labels, row=_("token"), column=_("channel")),
            unit=_("share"),
        ),
    )


def gates_sentence(kept: np.ndarray, labels: tuple[str, ...]) -> str:
    """Return the sentence about how much the tokens make the state decay, and which token most.

    Args:
        kept: the share of each channel that each token keeps, ``[n, C]``.
        labels: one label per token.
    """
    if len(kept) == 1:
        return _("There is one token only: nothing is there that could fade.")
    gone = 1 - kept[1:].astype(float)
    if not gone.any():
        return _("No token lets anything fade: the state is a plain sum.")
    if gone.min() == gone.max():
        return _("Every token lets {share} of all that is there fade, in every channel.", share=percent(gone.max()))
    most = int(gone.mean(1).argmax()) + 1
    text = _(
        "Before a token is written, between {low} and {high} of what is there fades: most at “{token}”, {mean} on the "
        "average of the channels.",
        low=percent(gone.min()),
        high=percent(gone.max()),
        token=escape_markdown(labels[most]),
        mean=percent(gone[most - 1].mean()),
    )
    if alike(kept):
        return paragraph(text, _("All channels fade alike."))
    return paragraph(text, _("Each channel fades by a gate of its own."))


def _left(seen: Seen) -> Step:
    kept = seen.parts["kept"]
    left = remaining_share(kept)
    order = left[-1].argsort(kind="stable")
    drawn = [order[0]] if alike(kept) else list(dict.fromkeys(order[[-1, len(order) // 2, 0]].tolist()))

    def draw(key: str) -> None:
        pictures.lines(
            [
                Curve(
                    _("every channel") if alike(kept) else _("channel {c}", c=channel),
                    list(range(len(left))),
                    left[:, channel].tolist(),
                    colour=place,
                    marks=len(left) < 3,
                )
                for place, channel in enumerate(drawn)
            ],
            key=f"{key}.left",
            x_title=_("after token i"),
            y_title=_("share left of what the first token wrote"),
            alt=_("Lines: what is left of what the first token wrote, in the slowest, middle and fastest channel"),
        )

    return Step(
        title=_("Which channels forget"),
        formula=r"\Gamma_{i0c} = \prod_{l=1}^{i} \alpha_{lc}",
        shapes={r"\Gamma": left.shape},
        sentence=left_sentence(kept),
        draw=draw,
    )


def left_sentence(kept: np.ndarray) -> str:
    """Return the sentence about what remains of the first token at the end, in the channels that keep most and least.

    Args:
        kept: the share of each channel that each token keeps, ``[n, C]``.
    """
    if len(kept) == 1:
        return _("Nothing has faded yet.")
    left, lives = remaining_share(kept)[-1], half_lives(kept[1:])
    if alike(kept):
        return _(
            "After the last of {n} tokens {share} is left of what the first wrote, in every channel.",
            n=len(kept),
            share=percent(left[0]),
        )
    slow, fast = int(left.argmax()), int(left.argmin())
    return _(
        "After the last of {n} tokens {high} is left of what the first wrote into channel {slow}, and {low} of what it "
        "wrote into channel {fast}: on the average of the tokens, half is gone after {long} tokens there and after "
        "{short} here.",
        n=len(kept),
        high=percent(left[slow]),
        slow=slow,
        low=percent(left[fast]),
        fast=fast,
        long=number(lives[slow]),
        short=number(lives[fast]),
    )


@later(N_("What is read"))
def _read(seen: Seen) -> Step:
    read = seen.parts["read"]
    plain = product(seen.parts["queries"], seen.parts["keys"].T)
    size, whole = lengths(np.stack([part[seen.visible] for part in (read, plain)]))
    text = _(
        "Of the size of all products of a query with a key, fading leaves {share}.",
        share=percent(size / (whole or 1.0)),
    )
    way = (
        _("What came at j has passed the gates of j + 1 to i.")
        if seen.causal
        else _("As no future is hidden, every query reads the state after the last token: all gates behind j count.")
    )

    def draw(key: str) -> None:
        pictures.board(
            key,
            pictures.pairs(seen, _("Without gates"), plain),
            pictures.pairs(seen, _("With gates"), read),
            unit=_("product"),
            diverging=True,
        )

    return Step(
        formula=r"R_{ij} = \sum_c \frac{q_{ic}}{\sqrt d}\, \Gamma_{ijc}\, k_{jc}",
        shapes={"Q": seen.parts["queries"].shape, "K": seen.parts["keys"].shape, "R": read.shape},
        sentence=paragraph(text, way),
        draw=draw,
    )
