"""Scalar decay: gated linear attention's own story, on a state whose channels all fade alike."""

from pages.inside.stories.gla import steps

__all__ = ["steps"]
