"""A bundler that joins JavaScript modules into one script, because a Streamlit component accepts only one script."""

import re
from os.path import normpath
from pathlib import Path

IMPORT = re.compile(r'^import \{ ([^}]*?),? \} from "(\.{1,2}/[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def modules(entry: Path) -> dict[Path, str]:
    """Return a module and all modules it imports, as text by path; imported modules come first."""
    text_by_path: dict[Path, str] = {}

    def collect(path: Path) -> None:
        text = path.read_text("utf-8")
        for match in IMPORT.finditer(text):
            if (imported := Path(normpath(path.parent / match[2]))) not in text_by_path:
                collect(imported)
        text_by_path[path] = text

    collect(entry)
    return text_by_path


def script(entry: Path) -> str:
    """Return a module and all modules it imports as one script.

    Names are not renamed. No two modules may use the same top-level name, and imports must be lists of names.
    """
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in modules(entry).values())
