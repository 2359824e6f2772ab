"""Gated DeltaNet: DeltaNet's own story, on a state that fades."""

from pages.inside.stories.deltanet import steps

__all__ = ["steps"]
