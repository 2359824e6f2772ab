"""The theme that a browser is told of at every run is found quickly, and is the same."""

import pytest
from streamlit import config
from streamlit.proto.NewSession_pb2 import NewSession
from streamlit.runtime import app_session

from app.streamlit_patches import server_theme

PLAIN = app_session._populate_theme_msg
PARTS = {
    "theme": lambda theme: theme,
    "theme.light": lambda theme: theme.light,
    "theme.dark": lambda theme: theme.dark,
    "theme.sidebar": lambda theme: theme.sidebar,
    "theme.dark.sidebar": lambda theme: theme.dark.sidebar,
}


@pytest.fixture(autouse=True)
def options(monkeypatch):
    monkeypatch.setattr(app_session, "_populate_theme_msg", PLAIN)
    settings = {
        "theme.base": "dark",
        "theme.primaryColor": "#123456",
        "theme.chartCategoricalColors": ["#111111", "#222222"],
        "theme.headingFontSizes": ["2rem"],
        "theme.light.textColor": "#654321",
        "theme.sidebar.font": "serif",
    }
    before = {name: config.get_option(name) for name in settings}
    for name, value in settings.items():
        config.set_option(name, value)
    yield
    for name, value in before.items():
        config.set_option(name, value)


def theme(tell):
    message = NewSession()
    for section, part in PARTS.items():
        tell(part(message.custom_theme), section)
    return message


def test_every_part_is_told_as_it_was_however_often():
    wanted = theme(PLAIN)
    assert wanted.custom_theme.HasField("light")
    assert not wanted.custom_theme.HasField("dark")
    assert server_theme.keep()
    assert app_session._populate_theme_msg is not PLAIN
    assert [theme(app_session._populate_theme_msg) for _ in range(3)] == [wanted] * 3


def test_what_one_browser_is_told_is_not_changed_by_another():
    server_theme.keep()
    theme(app_session._populate_theme_msg).custom_theme.chart_categorical_colors.append("#333333")
    assert theme(app_session._populate_theme_msg) == theme(PLAIN)


def test_options_are_read_once_until_files_are_read_again(monkeypatch):
    server_theme.keep()
    theme(app_session._populate_theme_msg)
    monkeypatch.setattr(config, "get_options_for_section", lambda section: 1 / 0)
    theme(app_session._populate_theme_msg)
    monkeypatch.undo()
    config.get_config_options(force_reparse=True)
    assert theme(app_session._populate_theme_msg) == theme(PLAIN)


@pytest.mark.parametrize("other", [lambda message, part: None, None])
def test_a_streamlit_that_does_it_otherwise_is_left_alone(monkeypatch, other):
    monkeypatch.setattr(app_session, "_populate_theme_msg", other)
    assert not server_theme.keep()
    assert app_session._populate_theme_msg is other
