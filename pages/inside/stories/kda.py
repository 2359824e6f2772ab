"""Kimi delta attention: DeltaNet's own story, on a state whose channels fade each by a gate of its own."""

from pages.inside.stories.deltanet import steps

__all__ = ["steps"]
