"""The options that a session is told of at every run are found quickly, and are the same."""

import pytest
from streamlit import config

from app import server_options

PLAIN = config.get_options_for_section


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setattr(config, "get_options_for_section", PLAIN)


def sections():
    return {option.section for option in config.get_config_options().values()} | {"theme.dark.sidebar", "no such"}


def test_every_section_has_the_options_it_had():
    assert server_options.by_section()
    assert config.get_options_for_section is not PLAIN
    assert all(config.get_options_for_section(each) == PLAIN(each) for each in sections())
    assert config.get_options_for_section("theme")


def test_a_value_that_changes_and_files_that_are_read_again_are_seen(monkeypatch):
    server_options.by_section()
    before = config.get_options_for_section("theme")["base"]
    try:
        config.set_option("theme.base", "dark")
        assert config.get_options_for_section("theme")["base"] == "dark"
        config.get_config_options(force_reparse=True)
        assert config.get_options_for_section("theme") == PLAIN("theme")
    finally:
        config.set_option("theme.base", before)


def test_a_streamlit_that_does_it_otherwise_is_left_alone(monkeypatch):
    monkeypatch.setattr(config, "get_options_for_section", lambda section, sorted: {})
    assert not server_options.by_section()
    monkeypatch.delattr(config, "get_options_for_section")
    assert not server_options.by_section()
