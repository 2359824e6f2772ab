"""Tests of partial reruns: a changed widget reruns only the page's body, unless the sidebar depends on the widget."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from benchmarks.load.tab import Tab

PANEL = 1
"""The first number in the path of every element in the left panel."""
MOVES = [
    ("matrices", "view", ["Difference"], False),
    ("masks", "masks_part", ["Numbers"], False),
    # Runs of this page may be long, so a changed widget must interrupt them, which needs a run of the whole page.
    ("inside", "step", ["1 · Three factors"], True),
]


async def turn(tab, name, value):
    """Set a widget and return the paths of the elements that are drawn again.

    The function waits until one of them is in the left panel, at most one second.
    """
    before = dict(tab.screen.nodes)
    [(widget, fragment)] = [each for each in tab.screen.knobs() if each[0].id.rpartition("-")[2] == name]
    tab.screen.values[widget.id] = widget.field, value
    await tab.ask(tab.screen.rerun(fragment), fragment)

    def redrawn():
        return {path for path, node in tab.screen.nodes.items() if path in before and node.run != before[path].run}

    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while PANEL not in {path[0] for path in redrawn()}:
                await asyncio.sleep(0.02)
    assert not tab.screen.errors
    return redrawn()


@pytest.mark.parametrize(("page", "name", "value", "all_of_it"), MOVES)
def test_a_change_redraws_the_left_panel_only_if_the_panel_depends_on_it(server, page, name, value, all_of_it):
    async def go():
        start = "input=synthetic&n=8&d=4&heads=2"
        tab = Tab(server, page, start)
        await tab.open()
        own = await turn(tab, name, value)
        address = tab.screen.query
        causal = await turn(tab, "causal", True)  # The pictures of heads in the sidebar depend on it.
        await tab.close()
        return start, own, address, causal, tab.screen.query

    with ThreadPoolExecutor(1) as apart:  # This thread may have the event loop of a browser.
        start, own, address, causal, after = apart.submit(asyncio.run, asyncio.wait_for(go(), 90)).result()
    assert len(own) > 10
    assert (PANEL in {path[0] for path in own}) == all_of_it
    assert address != start
    assert PANEL in {path[0] for path in causal}
    assert "causal=1" in after
    assert address in after.replace("&causal=1", "")
