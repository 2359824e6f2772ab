"""Story of scalar decay: the steps of gated linear attention on a state whose channels all decay equally."""

from pages.inside.stories.gla import steps

__all__ = ["steps"]
