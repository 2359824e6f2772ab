"""Story of Kimi delta attention: DeltaNet's steps on a state in which each channel has its own gate."""

from pages.inside.stories.deltanet import steps

__all__ = ["steps"]
