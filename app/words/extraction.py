"""Extraction of the messages to translate: from the app's code, from ``attention_core``, and from the lessons."""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import attention_core as ac
from app.words.i18n import SETTING

_OF_VARIANTS = "help summary title mechanism causal_reason cross_reason note complexity reference_name noncausal_method"
_OF_CLAIMS = "statement short experiment rule finding details theorem label brief x_title y_title"
SHOWN = {*_OF_VARIANTS.split(), *_OF_CLAIMS.split()}
"""Keyword arguments of the core's records whose text appears on screen."""
MARKS = {"_": "gettext", "_n": "ngettext", "N_": "gettext", "C_": "pgettext"}
"""Functions of `app.words.i18n` that mark messages, with gettext's names for their arguments."""

Message = tuple[int, None, str, list[str]]
WithContext = tuple[int, str, tuple[str, str], list[str]]
Marked = tuple[int, str, str | tuple[str, ...], list[str]]


def screen(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Marked]:  # noqa: ANN401
    """Yield the messages that `app.words.i18n` marks in ``app`` and ``pages``, inside f-strings too (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call) and (function := MARKS.get(getattr(node.func, "id", ""))):
            texts = [word for given in node.args for _, _, word, _ in _messages(_possible_values(given))]
            if function in ("ngettext", "pgettext"):
                yield node.lineno, function, tuple(texts), []
            else:
                yield from ((node.lineno, function, word, []) for word in texts)


def _possible_values(value: ast.AST) -> Iterator[ast.AST]:
    """Yield the possible values of an expression: itself, or both arms of a conditional expression."""
    if isinstance(value, ast.IfExp):
        yield from _possible_values(value.body)
        yield from _possible_values(value.orelse)
    else:
        yield value


def core(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Message | WithContext]:  # noqa: ANN401
    """Yield the messages of ``attention_core``: sentences of errors and notices, and texts of records (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Module):
            yield from _of_claim(node)
        if isinstance(node, ast.ClassDef):
            yield from _of_enumeration(node)
            if node.name == "Setting":
                yield from _of_settings(node.lineno)
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [word.value for word in node.keywords if word.arg in SHOWN]
        if name == "N_" or name.endswith("Error") or name.lower().endswith("notice"):
            texts += node.args[:1]
        if name == "Quantity":
            texts += node.args[1:]
        yield from _messages(texts)


def lesson(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Message]:  # noqa: ANN401
    """Yield the texts that a lesson of this project shows to a visitor (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    found = tomllib.load(file)
    sentences = [found[name] for name in ("title", "question", "seen") if name in found]
    for step in found["step"]:
        sentences += [step[name] for name in ("say", "do", "ask", "then") if name in step] + step.get("choices", [])
    yield from ((1, None, words, []) for words in sentences)


def _of_claim(module: ast.Module) -> Iterator[Message]:
    """Yield the strings in constants of a module of claims, which name lines and bars of figures.

    Words of variants, such as ``local~window~32``, are left out. A name that equals such a word is marked with ``N_``.
    """
    assigned = {ast.unparse(each.targets[0]): each.value for each in module.body if isinstance(each, ast.Assign)}
    if "CLAIM" in assigned:
        del assigned["CLAIM"]
        found = _messages(word for value in assigned.values() for word in ast.walk(value))
        variants = {variant.key for variant in ac.all_variants()}
        yield from (message for message in found if message[2].partition("~")[0] not in variants)


def _of_enumeration(enumeration: ast.ClassDef) -> Iterator[Message]:
    """Yield the values of a string enumeration, such as the verdicts on claims."""
    if any(getattr(base, "id", "") == "StrEnum" for base in enumeration.bases):
        yield from _messages(each.value for each in enumeration.body if isinstance(each, ast.Assign))


def _of_settings(line: int) -> Iterator[WithContext]:
    """Yield names and choices of all settings, which the source code does not contain as marked strings."""
    for variant in ac.all_variants():
        for setting in variant.params.settings():
            for word in (setting.name, *setting.choices):
                yield line, "pgettext", (SETTING, word.replace("_", " ")), []


def _messages(values: Iterable[ast.AST]) -> Iterator[Message]:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
            yield value.lineno, None, value.value, []
