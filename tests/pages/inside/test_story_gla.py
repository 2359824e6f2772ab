"""Tests of gated linear attention's story: the decay of each channel, for made-up gates and the variant's own."""

import numpy as np
import pytest
from driver import curves
from stories import head, open_step, seen

import attention_core as ac
from pages.inside.stories import gla
from pages.inside.stories.gla import gates_sentence, left_sentence

LABELS = ("a", "b_", "c")


def test_what_each_token_keeps_is_told_by_where_most_fades():
    kept = np.array([[0.1, 0.1], [0.75, 0.5], [0.75, 1.0]])  # the state is empty before the first token
    assert gates_sentence(kept, LABELS) == (
        "Before a token is written, between 0% and 50% of what is there fades: most at “b\\_”, 38% on the average of "
        "the channels. Each channel fades by a gate of its own."
    )
    assert gates_sentence(kept[:, 1:], LABELS).endswith("All channels fade alike.")
    assert gates_sentence(np.full((3, 2), 0.75), LABELS) == (
        "Every token lets 25% of all that is there fade, in every channel."
    )
    assert "a plain sum" in gates_sentence(np.ones((3, 2)), LABELS)
    assert "nothing is there that could fade" in gates_sentence(kept[:1], LABELS)


def test_channels_are_told_apart_by_what_is_left_of_the_first_token():
    kept = np.array([[0.1, 0.1], [0.5, 1.0], [0.5, 0.5]])  # the first token's gate acts on an empty state
    assert left_sentence(kept) == (
        "After the last of 3 tokens 50% is left of what the first wrote into channel 1, and 25% of what it wrote into "
        "channel 0: on the average of the tokens, half is gone after 2 tokens there and after 1 here."
    )
    assert left_sentence(kept[:, :1]) == (
        "After the last of 3 tokens 25% is left of what the first wrote, in every channel."
    )
    assert left_sentence(kept[:1]) == "Nothing has faded yet."


def test_lines_follow_the_slowest_and_the_fastest_channel():
    kept = (1 / (1 + np.exp(-head()[1].numpy()))) ** (1 / 16)
    left = np.cumprod(np.concatenate([np.ones((1, 8)), kept[1:]]), 0)
    drawn = curves(open_step(ac.get("gla"), 2, causal=True))
    assert len(drawn) == 3
    for channel in (left[-1].argmax(), left[-1].argmin()):
        assert drawn[f"channel {channel}"][1] == pytest.approx(left[:, channel].tolist(), rel=1e-4)
    drawn = curves(open_step(ac.get("scalar_decay", decay=0.5), 2, causal=True))
    assert drawn["every channel"][1] == pytest.approx([0.5**i for i in range(24)], rel=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_what_fading_leaves_of_the_products(causal):
    q, k, _ = head()
    plain = (q @ k.mT / 8**0.5).numpy()
    left = 0.5 ** (np.subtract.outer(np.arange(24), np.arange(24)) if causal else 23 - np.arange(24)[None])
    allowed = np.tri(24, dtype=bool) if causal else np.ones((24, 24), bool)
    share = np.linalg.norm((plain * left)[allowed]) / np.linalg.norm(plain[allowed])
    told = gla.steps(seen(ac.get("scalar_decay", decay=0.5), causal=causal))[2].sentence
    assert float(told.split("fading leaves ")[1].split("%")[0]) == pytest.approx(100 * share, abs=0.51)
    assert ("has passed the gates of j + 1 to i" in told) == causal
    assert ("reads the state after the last token" in told) != causal
