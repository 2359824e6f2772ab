"""Tests of the JavaScript that the app sends: every module is in one bundled script, after the modules it imports."""

import re
from os.path import normpath
from pathlib import Path

import pytest

import app
from app.page_script import bundling

APP = Path(app.__file__).parent
CHANNELS = APP / "matrix_board" / "channels"
ENTRIES = [APP / "page_script" / "entry.js", *(CHANNELS / f"{name}.js" for name in ("numbers", "settings", "widget"))]
NAMED = r"^{}(?:async )?(?:const|let|function|class) (\w+)"


def names(text, before=""):
    return re.findall(NAMED.format(before), text, re.MULTILINE)


def test_every_module_is_part_of_a_script():
    library = APP / "page_script" / "charts" / "plotly"
    own = {path for path in APP.rglob("*.js") if path.parent != library}
    assert own == {path for entry in ENTRIES for path in bundling.modules(entry)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.name)
def test_a_script_consists_of_its_modules(entry):
    found = bundling.modules(entry)
    joined = bundling.script(entry)
    assert re.findall(r"^(?:import|export)\b.*", joined, re.MULTILINE) == re.findall(
        r"^export default\b.*", found[entry], re.MULTILINE
    )
    assert joined.count("export default") == 1
    joined_names = names(joined)
    assert sorted(joined_names) == sorted(set(joined_names)), "two modules use one name"
    own = [name for text in found.values() for name in names(text, "(?:export )?")]
    assert joined_names == own, "nothing a module says is lost"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda path: path.name)
def test_every_import_names_an_earlier_export(entry):
    found = bundling.modules(entry)
    order = list(found)
    for path, text in found.items():
        imports = bundling.IMPORT.findall(text)
        assert len(imports) == len(re.findall(r"^import\b", text, re.MULTILINE)), "imports are lists of names"
        for listed, file in imports:
            origin = Path(normpath(path.parent / file))
            assert order.index(origin) < order.index(path), f"{path.name} and {file} import each other"
            assert set(listed.split(", ")) <= set(names(found[origin], "export ")), f"{path.name} from {file}"


def test_only_one_function_fills_templates():
    """Check for ``replace`` with a string: it corrupts `$` signs in the inserted values."""
    hand_made = re.compile(r"""\.replace(?:All)?\(\s*["'`]\{|\.replace(?:All)?\(\s*/\\?\{""")
    assert [path.name for path in APP.rglob("*.js") if hand_made.search(path.read_text("utf-8"))] == ["templates.js"]
