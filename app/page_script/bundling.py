"""A bundler that joins JavaScript modules into one script, because a Streamlit component accepts only one script."""

import re
from os.path import normpath
from pathlib import Path

IMPORT = re.compile(r'^import \{ ([^}]*?),? \} from "(\.{1,2}/[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def modules(entry: Path) -> dict[Path, str]:
    """Return a module and all modules it imports, as text by path; imported modules come first."""
    found: dict[Path, str] = {}

    def take(path: Path) -> None:
        text = path.read_text("utf-8")
        for each in IMPORT.finditer(text):
            if (imported := Path(normpath(path.parent / each[2]))) not in found:
                take(imported)
        found[path] = text

    take(entry)
    return found


def script(entry: Path) -> str:
    """Return a module and all modules it imports as one script.

    Names are not renamed. No two modules may use the same top-level name, and imports must be lists of names.
    """
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in modules(entry).values())
