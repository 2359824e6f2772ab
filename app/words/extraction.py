"""Functions by which Babel finds the texts to translate: in the app's code, in ``attention_core``, and in lessons."""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import attention_core as ac
from app.words.i18n import SETTING

VARIANT_ARGS = "help summary title mechanism causal_reason cross_reason note complexity reference_name noncausal_method"
CLAIM_ARGS = "statement short experiment rule finding details theorem label"
TEXT_ARGUMENTS = {*VARIANT_ARGS.split(), *CLAIM_ARGS.split()}
"""Keyword arguments of the core's records whose text appears on screen."""
MARKS = {"_": "gettext", "_n": "ngettext", "N_": "gettext", "C_": "pgettext"}
"""Functions of `app.words.i18n` that mark messages, with gettext's names for their arguments."""

Message = tuple[int, None, str, list[str]]
ContextMessage = tuple[int, str, tuple[str, str], list[str]]
MarkedMessage = tuple[int, str, str | tuple[str, ...], list[str]]


def screen(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[MarkedMessage]:  # noqa: ANN401
    """Yield the messages that `app.words.i18n` marks in ``app`` and ``pages``, inside f-strings too (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call) and (function := MARKS.get(getattr(node.func, "id", ""))):
            texts = [text for argument in node.args for _, _, text, _ in _messages(_possible_values(argument))]
            if function in ("ngettext", "pgettext"):
                yield node.lineno, function, tuple(texts), []
            else:
                yield from ((node.lineno, function, text, []) for text in texts)


def _possible_values(value: ast.AST) -> Iterator[ast.AST]:
    """Yield the possible values of an expression: itself, or both arms of a conditional expression."""
    if isinstance(value, ast.IfExp):
        yield from _possible_values(value.body)
        yield from _possible_values(value.orelse)
    else:
        yield value


def core(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Message | ContextMessage]:  # noqa: ANN401
    """Yield the messages of ``attention_core``: sentences of errors and notices, and texts of records (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Module):
            yield from _claim_messages(node)
        if isinstance(node, ast.ClassDef):
            yield from _enumeration_messages(node)
            if node.name == "Setting":
                yield from _setting_messages(node.lineno)
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [keyword.value for keyword in node.keywords if keyword.arg in TEXT_ARGUMENTS]
        if name == "N_" or name.endswith("Error") or name.lower().endswith("notice"):
            texts += node.args[:1]
        if name == "Quantity":
            texts += node.args[1:]
        if name == "Figure":
            texts += [axis.args[1] for keyword in node.keywords if isinstance(axis := keyword.value, ast.Call)]
        yield from _messages(texts)


def lesson(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Message]:  # noqa: ANN401
    """Yield the texts that a lesson of this project shows to a visitor (for Babel).

    The arguments and the yielded tuples are those of Babel's extraction methods; only ``file`` is used.
    """
    data = tomllib.load(file)
    sentences = [data[name] for name in ("title", "question", "seen") if name in data]
    for step in data["step"]:
        sentences += [step[name] for name in ("say", "do", "ask", "then") if name in step] + step.get("choices", [])
    yield from ((1, None, text, []) for text in sentences)


def _claim_messages(module: ast.Module) -> Iterator[Message]:
    """Yield the strings in the constants of a module of claims, which name lines and bars of figures.

    Strings for variants, such as ``local~window~32``, are left out. A name on screen that equals such a string must
    be marked with ``N_``.
    """
    constants = {ast.unparse(each.targets[0]): each.value for each in module.body if isinstance(each, ast.Assign)}
    if "CLAIM" in constants:
        del constants["CLAIM"]
        messages = _messages(node for value in constants.values() for node in ast.walk(value))
        variants = {variant.key for variant in ac.all_variants()}
        yield from (message for message in messages if message[2].partition("~")[0] not in variants)


def _enumeration_messages(enumeration: ast.ClassDef) -> Iterator[Message]:
    """Yield the values of a string enumeration, such as the verdicts on claims."""
    if any(getattr(base, "id", "") == "StrEnum" for base in enumeration.bases):
        yield from _messages(each.value for each in enumeration.body if isinstance(each, ast.Assign))


def _setting_messages(line: int) -> Iterator[ContextMessage]:
    """Yield names and choices of all settings, which the source code does not contain as marked strings."""
    for variant in ac.all_variants():
        for setting in variant.params.settings():
            for name in (setting.name, *setting.choices):
                yield line, "pgettext", (SETTING, name.replace("_", " ")), []


def _messages(values: Iterable[ast.AST]) -> Iterator[Message]:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
            yield value.lineno, None, value.value, []
