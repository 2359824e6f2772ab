"""Checks of the translations in app/locale: missing, obsolete and fuzzy messages, placeholders, markup, and terms.

``PYTHONPATH=. python tests/catalogue_faults.py`` prints the faults of every included language. The terms of a language
are in ``docs/terms.<tag>.md``, such as ``docs/terms.zh-CN.md``. This document also describes how to exempt a message.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory

from babel.messages import Catalog, Message
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[1]
LOCALES = ROOT / "app" / "locale"
MARKUP = re.compile(r"\$\$?[^$]+\$\$?|`[^`]*`|\*\*|\]\([^)]*\)|</?\w+[^>]*>|:material/\w+:")
"""Formulas, code, emphasis, addresses, tags and icons, which a translation contains as often as its message."""
BOLD = re.compile(r"\*\*(.*?)\*\*", re.DOTALL)
MARKS = tuple("。！？，；：")
"""Full-width marks. Markdown shows the asterisks of bold text that ends in one if text follows without a space."""
CROWDED = re.compile(r"[一-鿿](?:\*\*)?\{\w[^{}]*\}|\{\w[^{}]*\}(?:\*\*)?[一-鿿]")
"""A Chinese character next to a place for a value. A space separates them; the app removes it from Chinese values."""
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (?:articles|usual) \|", re.MULTILINE)
FREE = re.compile(r"free: (.+)")


@cache
def _template() -> str:
    with TemporaryDirectory() as folder:
        written = Path(folder) / "messages.pot"
        mapping = str(ROOT / "babel.cfg")
        CommandLineInterface().run(["pybabel", "-q", "extract", "-F", mapping, "-o", str(written), str(ROOT)])
        return written.read_text("utf-8")


def template() -> Catalog:
    """Return a catalogue of all messages of the project, without translations."""
    return read_po(_template().splitlines())


def forms(text: str | Iterable[str]) -> tuple[str, ...]:
    """Return the forms of a message or of a translation: several if it is a plural."""
    return (text,) if isinstance(text, str) else tuple(text)


def fields(text: str) -> Counter[str]:
    """Return the places for values in a text, with their formats; none in a text that is not a template."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return Counter()
    return Counter(f"{name}:{form}" if form else name for _, name, form, _ in parts if name is not None)


def markup(text: str) -> Counter[str]:
    """Return the markup in a text."""
    return Counter(MARKUP.findall(text))


def faults(catalogue: Catalog, messages: Catalog) -> Iterator[str]:
    """Yield the faults of a catalogue, which has to translate all these messages."""
    for message in messages:
        if not message.id:
            continue
        one = forms(message.id)[0]
        found = catalogue.get(one, message.context)
        if found is None or not all(forms(found.string)):
            yield f"missing: {one}"
        elif found.fuzzy:
            yield f"fuzzy: {one}"
        else:
            yield from _differences(message, found)
    for obsolete in catalogue.obsolete.values():
        yield f"obsolete (run pybabel update with --ignore-obsolete): {forms(obsolete.id)[0]}"


def _differences(message: Message, found: Message) -> Iterator[str]:
    """Yield what a translation does not have in common with its message."""
    translated, english = forms(found.string), forms(message.id)
    for words in translated:
        if any(bold.endswith(MARKS) for bold in BOLD.findall(words)):
            yield f"bold ends in a mark: {words}"
        if CROWDED.search(words) and fields(words):
            yield f"no space next to a value: {words}"
        # A singular form may leave out the number, such as "one token". If a language has one form for all numbers,
        # this form must contain the number.
        equal_to = english if words is translated[0] and len(translated) > 1 else english[-1:]
        for kind, parts in (("fields", fields), ("markup", markup)):
            changes = [(parts(each) - parts(words)) | (parts(words) - parts(each)) for each in equal_to]
            if all(changes):
                yield f"{kind} {sorted(changes[-1])}: {words}"


def terms(document: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the terms and the names of variants of a document, each with its translations."""
    tables = []
    for part in document.partition("## Names of variants")[::2]:
        rows = [(english.split(", "), translated.split("、")) for english, translated in ROW.findall(part)]
        tables.append(rows)
    words = {form.lower(): translated for english, translated in tables[0] for form in english}
    names = {", ".join(english): translated for english, translated in tables[1]}
    return words, names


def term_faults(catalogue: Catalog, words: Mapping[str, list[str]], names: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the messages whose translation does not contain the terms that the message contains.

    Longer terms come first, so that a message with "attention matrix" is not searched for "attention".
    """
    longest = sorted(words, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest))})(?![\w-])", re.IGNORECASE)
    for message in catalogue:
        if not message.id or not all(forms(message.string)):
            continue
        english, translated = forms(message.id)[-1], forms(message.string)[-1]
        if english in names:
            if translated not in names[english]:
                yield f"name {english}: {translated}, not {names[english][0]}"
            continue
        free = {word.strip() for line in message.user_comments for word in FREE.findall(line)}
        prose = MARKUP.sub(" ", re.sub(r"\{[^}]*\}", " ", english))
        for term in {found.lower() for found in pattern.findall(prose)} - free:
            if not any(form in translated for form in words[term]):
                yield f"term {term} ({'、'.join(words[term])}): {translated}"


def shipped() -> Iterator[tuple[str, Catalog]]:
    """Yield the tag and the catalogue of every shipped language."""
    for path in sorted(LOCALES.glob("*/LC_MESSAGES/messages.po")):
        with path.open("rb") as file:
            yield path.parents[1].name.replace("_", "-"), read_po(file, locale=path.parents[1].name)


def shipped_faults() -> Iterator[str]:
    """Yield the faults of all shipped languages."""
    for tag, catalogue in shipped():
        document = ROOT / "docs" / f"terms.{tag}.md"
        found = [*faults(catalogue, template())]
        if document.exists():
            found += term_faults(catalogue, *terms(document.read_text("utf-8")))
        yield from (f"{tag}: {each}" for each in found)


if __name__ == "__main__":
    found = list(shipped_faults())
    sys.stdout.write("".join(f"{each}\n" for each in found))
    sys.exit(bool(found))
