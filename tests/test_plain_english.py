"""Tests that docstrings and comments have no fault that the checks in ``plain_english.py`` find."""

import pytest
from plain_english import LONGEST, faults, files


def test_docstrings_and_comments_are_plain():
    assert len(files()) > 500
    assert not [fault for file in files() for fault in faults(file)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Return the cache."""\n', None),
        ('def f():\n    """What the cache holds."""\n', "opens with 'What'"),
        ('"""The entries that stand for a visitor."""\n', "'stand for': write represents"),
        ("x = 1  # computed anew\n", "'anew': write again"),
        ("x = 1  # reads ``beside``, a name\n", None),
        ('x = "beside"\n', None),
        ("x = 1  # all heads if ``head`` is None\n", None),
        ("x = 1  # there are none\n", "'are none': write do not exist"),
        (f'"""{"the word " * LONGEST}."""\n', "a sentence of more than"),
        ("# one line\n# and the same at once\nx = 1\n", ":1: 'at once'"),
    ],
)
def test_faults_are_found(tmp_path, source, expected):
    file = tmp_path / "example.py"
    file.write_text(source)
    found = list(faults(file))
    assert (expected is None) == (not found)
    assert all(expected in fault for fault in found)
