"""Tests of partial reruns: an interaction redraws its own fragment, or the whole page if more depends on it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from benchmarks.load.tab import Tab

PANEL = 1
"""The first number in the paths of elements in the left panel."""
MOVES = [
    ("matrices", "view", ["difference"], False),
    ("masks", "masks_part", ["Numbers"], False),
    ("masks", "picture", ["SVG"], True),  # the link to another page in the panel contains it
    ("inside", "step", ["2 · Three factors"], True),  # a page with long runs, which an interaction interrupts
]


async def turn(tab, name, value):
    """Set a widget and return the paths of redrawn elements once the left panel is redrawn or a second has passed."""
    before = dict(tab.screen.nodes)
    [(widget, fragment)] = [each for each in tab.screen.knobs() if each[0].id.rpartition("-")[2] == name]
    tab.screen.values[widget.id] = widget.field, value
    await tab.ask(tab.screen.rerun(fragment), fragment)

    def again():
        return {path for path, node in tab.screen.nodes.items() if path in before and node.run != before[path].run}

    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while PANEL not in {path[0] for path in again()}:
                await asyncio.sleep(0.02)
    assert not tab.screen.errors
    return again()


@pytest.mark.parametrize(("page", "name", "value", "all_of_it"), MOVES)
def test_a_move_draws_the_panel_on_the_left_again_only_where_something_there_depends_on_it(
    server, page, name, value, all_of_it
):
    async def go():
        tab = Tab(server, page, "input=synthetic&n=8&d=4&heads=2")
        await tab.open()
        own = await turn(tab, name, value)
        address = tab.screen.query
        causal = await turn(tab, "causal", True)  # its thumbnails of all heads depend on it
        await tab.close()
        return own, address, causal, tab.screen.query

    with ThreadPoolExecutor(1) as apart:  # the browser's thread has its own event loop
        own, address, causal, after = apart.submit(asyncio.run, asyncio.wait_for(go(), 90)).result()
    assert len(own) > 10
    assert (PANEL in {path[0] for path in own}) == all_of_it
    assert address != "input=synthetic&n=8&d=4&heads=2"
    assert PANEL in {path[0] for path in causal}
    assert "causal=1" in after
    assert address in after.replace("&causal=1", "")
