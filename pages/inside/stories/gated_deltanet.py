"""Story of Gated DeltaNet: DeltaNet's steps on a state that decays."""

from pages.inside.stories.deltanet import steps

__all__ = ["steps"]
