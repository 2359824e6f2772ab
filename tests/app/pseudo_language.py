"""Message catalogues for tests of translation, such as a pseudo-language in which messages are two fifths longer."""

import re
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import write_po
from catalogue_faults import template

from app.page_script import mounting
from app.state import controls
from app.words import i18n

WORD = "lööng"
END = re.compile(r"[.:?!…]*$")


def lengthened(message):
    """Return a message with about two fifths more text (at least one word) before its last character."""
    more = " ".join([WORD] * max(1, round(0.4 * len(message) / (len(WORD) + 1))))
    return END.sub(lambda end: f" {more}{end[0]}", message, count=1)


def pseudo_catalogue():
    """Return the catalogue of the pseudo-language."""
    catalogue = template()
    for message in catalogue:
        if message.id:
            forms = message.id if message.pluralizable else (message.id,)
            longer = tuple(map(lengthened, forms))
            message.string = longer if message.pluralizable else longer[0]
    return catalogue


def install(catalogue, locales, folder):
    """Write a catalogue and its compiled form where the app finds it, in a folder of languages."""
    place = locales / folder / "LC_MESSAGES"
    place.mkdir(parents=True)
    with (place / "messages.po").open("wb") as file:
        write_po(file, catalogue)
    with (place / "messages.mo").open("wb") as file:
        write_mo(file, catalogue)


@contextmanager
def installed(**catalogues):
    """Replace the app's catalogues within the block by the given ones, named by their folders."""
    readers = (i18n.languages, i18n.catalogue, controls._fields, mounting.files, mounting._component)
    with TemporaryDirectory() as folder, patch.object(i18n, "LOCALES", Path(folder)):
        for name, catalogue in catalogues.items():
            install(catalogue, i18n.LOCALES, name)
        for reader in readers:
            reader.cache_clear()
        yield
    for reader in readers:
        reader.cache_clear()


def catalogue_of(messages, locale):
    """Return a catalogue of some messages; a message with a context is given as ``C_`` returns it."""
    catalogue = Catalog(locale=locale)
    for message, words in messages.items():
        context, _, own = message.rpartition(i18n.CONTEXT)
        catalogue.add(own, words, context=context or None)
    return catalogue
