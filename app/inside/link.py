"""The way to the Inside page from wherever a variant is shown."""

import attention_core as ac
from app import navigation
from app.inside.stories import discover
from app.text import _


def show(attention: ac.Attention) -> None:
    """A link that takes a variant apart on the same input; nothing for one without an inside worth seeing."""
    if attention.key in discover():
        navigation.link("inside", _("Take it apart"), icon=":material/biotech:", fields={"inside": [attention.word]})
