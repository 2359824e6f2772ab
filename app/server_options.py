"""Streamlit's options by their sections: it asks for six at every run, and walks through all options for each."""

import inspect
from collections import defaultdict
from typing import Any

from streamlit import config


def by_section() -> bool:
    """Sort the options once, where Streamlit lets them be asked for as it does in 1.67.

    What an option holds is still read at every question. The options are sorted anew whenever the files that set them
    have been read again, as that makes new ones.

    Returns:
        Whether it could be done: this rests on functions that are none of Streamlit's promises.
    """
    asked, known = (getattr(config, name, None) for name in ("get_options_for_section", "get_config_options"))
    if asked is None or known is None or [*inspect.signature(asked).parameters] != ["section"]:
        return False
    options = config.get_config_options
    last: tuple[object, dict[str, list[Any]]] = (None, {})

    def of(section: str) -> dict[str, Any]:
        nonlocal last
        now, (all_of_them, sections) = options(), last
        if all_of_them is not now:
            sections = defaultdict(list)
            for option in now.values():
                sections[option.section].append(option)
            last = now, sections
        return {option.name: option.value for option in sections.get(section, ())}

    config.get_options_for_section = of
    return True
