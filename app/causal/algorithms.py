"""A view of the Causal page."""

from app.input_panel import Chosen
from app.share import Field


def fields() -> dict[str, Field]:
    """What a link to this view carries."""
    return {}


def show(chosen: Chosen) -> None:
    """Draw it."""
