"""Collects for translators what the core says: it knows no screen, so its words stand outside ``_()``."""

import ast
from collections.abc import Iterator
from typing import IO, Any

SHOWN = {"help", "summary", "title", "causal_reason", "note", "complexity"}
"""Keyword arguments of the core's records whose words reach the screen."""

Message = tuple[int, None, str, list[str]]


def core(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Message]:  # noqa: ANN401
    """Babel's extraction method for ``attention_core``: sentences of errors and notices, words of the records.

    Args:
        file: a Python file.
        keywords: unused, part of Babel's interface.
        comment_tags: unused.
        options: unused.

    Yields:
        Line, function, message and comments, as Babel wants them.
    """
    for node in ast.walk(ast.parse(file.read())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        said = [word.value for word in node.keywords if word.arg in SHOWN]
        if name.endswith("Error") or name.lower().endswith("notice"):
            said += node.args[:1]
        for value in said:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                yield value.lineno, None, value.value, []
