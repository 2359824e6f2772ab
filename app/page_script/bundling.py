"""JavaScript modules as the one script that Streamlit's components take: they serve no folder of modules."""

import re
from os.path import normpath
from pathlib import Path

IMPORT = re.compile(r'^import \{ ([^}]*?),? \} from "(\.{1,2}/[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def modules(entry: Path) -> dict[Path, str]:
    """A module and all it imports, from file to text: what is imported stands before what imports it."""
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
    """A module with all it imports, in one.

    Names keep their spelling, so no two modules may use one at their top level, and imports are lists of names.
    """
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in modules(entry).values())
