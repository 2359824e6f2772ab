"""The round of hashing that is looked at, where a variant sorts its tokens by several."""

from app.controls import Control, listed_whole
from app.text import N_


def hash_round() -> Control[int]:
    """The option, for pages that show a round."""
    return listed_whole(0, 0, 63, N_("Round"), layout={"width": 120})
