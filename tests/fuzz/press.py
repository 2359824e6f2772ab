"""A simulated visitor who uses every widget of a page over the real websocket, with or without waiting for the answer.

    PYTHONPATH=. python tests/fuzz/press.py          every page for five minutes, half of it with waiting
    PYTHONPATH=. python tests/fuzz/press.py entropy --seconds 60 --seed 7
    PYTHONPATH=. python tests/fuzz/press.py --url ws://localhost:8501/_stcore/stream

Without ``--url``, the program starts its own server with the hosted profile. It exits with status 1 if a page shows an
exception, or if an address that the page wrote opens with a warning. It then prints the actions that led there.
"""

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from app.page import discover
from benchmarks.load.screen import FORM, OPENED, Screen, widget_state

ROOT = Path(__file__).parents[2]
HOME = "home"
TEXTS = (
    *("", " ", "a", "The cat saw the dog. " * 9, "word " * 700),
    *("نص عربي قصير", "图书管理员", "\x00\u202e\U0001f642<b>"),
)
WAITED = 60
"""Seconds without an answer after which a page counts as stuck."""


class PageError(Exception):
    """A fault that a visitor must never see."""


class Visitor:
    """One session: the screen of a tab, and the widgets that were on it before its last run.

    Attributes:
        moves: the actions so far, newest last.
        warnings: the warnings that the last run has shown.
    """

    def __init__(self, stream, random_):
        self.stream, self.random = stream, random_
        self.screen, self.older = Screen("http://127.0.0.1/"), {}
        self.moves, self.warnings = [], []
        self.finished, self.heard = asyncio.Event(), time.monotonic()

    async def listen(self):
        """Read the server's messages until the connection closes."""
        async for raw in self.stream:
            self.heard, message = time.monotonic(), ForwardMsg.FromString(raw)
            if message.WhichOneof("type") == "new_session":
                self.warnings = []
                if not message.metadata.run.fragment_ids:
                    self.older = self.widgets()
            element = message.delta.new_element
            if element.WhichOneof("type") == "exception":
                error = element.exception
                raise PageError(f"{error.type}: {error.message}\n" + "\n".join(error.stack_trace))
            if element.WhichOneof("type") == "alert" and element.alert.format == element.alert.WARNING:
                self.warnings.append(element.alert.body)
            finished = self.screen.read(raw)
            if self.screen.errors:
                raise PageError("; ".join(self.screen.errors))
            if finished:
                self.finished.set()

    def widgets(self):
        """Return the widgets that can be used, each with its path and its last state."""
        screen = self.screen
        shown = [(node.widget, path) for path, node in screen.nodes.items() if node.widget]
        return {
            widget.id: (widget, path, screen.values.get(widget.id))
            for widget, path in shown
            if widget.kind in (*MOVES, *OPENED, FORM) and not getattr(widget.proto, "disabled", False)
        }

    async def ask(self, request):
        """Send a request that also contains the earlier widgets, like a browser that has not read the newest ones."""
        sent = {state.id for state in request.rerun_script.widget_states.widgets}
        for widget, _, state in self.older.values():
            if state and widget.id not in sent | set(self.screen.values):
                request.rerun_script.widget_states.widgets.append(widget_state(widget.id, *state))
        self.finished.clear()
        self.heard = time.monotonic()
        await self.stream.send(request.SerializeToString())

    async def move(self):
        """Use a random widget; return whether there was one."""
        known = self.widgets()
        if self.random.random() < 0.2:
            known = {**self.older, **known}
        if not known:
            return False
        key = self.random.choice(sorted(known))
        widget, path, state = known[key]
        label = getattr(widget.proto, "label", "") or key
        pressed, description = None, f"open or press {label}"
        if widget.kind in MOVES and widget.kind != "button":
            pressed = MOVES[widget.kind](widget.proto, self.random)
            if pressed is None:
                return False
            pressed = widget.field, pressed[1]
            description = f"{label} = {str(pressed[1])[:60]!r}"
        elif widget.kind in OPENED:
            if state is None:
                return False
            pressed = widget.field, not state[1]
        self.moves.append(description)
        node = self.screen.nodes.get(path)
        if node and node.widget and node.widget.id == key:
            request, _ = self.screen.change(path, pressed)
        else:  # The widget is gone, and the browser does not know it yet.
            if pressed:
                self.older[key] = widget, path, pressed
            request = self.screen.rerun()
            if widget.kind == "button":
                request.rerun_script.widget_states.widgets.add(id=key, trigger_value=True)
        await self.ask(request)
        return True

    async def settle(self):
        """Wait until the page has finished its run."""
        while not self.finished.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.finished.wait(), 1)
            if time.monotonic() - self.heard > WAITED:
                raise PageError(f"no word within {WAITED} s")


def _group(expected, random_):
    options = [option.content for option in expected.options]
    if not options:
        return None
    if expected.click_mode == expected.SINGLE_SELECT:
        return "string_array_value", [random_.choice(options)]
    return "string_array_value", random_.sample(options, random_.randint(0, min(3, len(options))))


def _slider(expected, random_):
    if expected.options:
        return "string_array_value", [random_.choice(list(expected.options))]
    steps = round((expected.max - expected.min) / expected.step)
    return "double_array_value", [min(expected.max, expected.min + expected.step * random_.randint(0, steps))]


def _number(expected, random_):
    step = expected.step or 1
    steps = int((expected.max - expected.min) / step)
    return "double_value", expected.min + step * random_.randint(0, min(steps, 10**6))


MOVES = {
    "button_group": _group,
    "slider": _slider,
    "number_input": _number,
    "selectbox": lambda box, r: ("string_value", r.choice(list(box.options))) if box.options else None,
    "checkbox": lambda widget, r: ("bool_value", r.random() < 0.5),
    "text_area": lambda widget, r: ("string_value", r.choice(TEXTS)),
    "text_input": lambda widget, r: ("string_value", r.choice(TEXTS)),
    "button": lambda widget, r: "trigger",
}
"""For each kind of widget, a function that returns a random state to send, or ``"trigger"`` for a button."""


async def press(url, page, seconds, seed, *, waits):
    """Visit one page and use random widgets.

    Args:
        url: the address of the server's stream.
        page: the page's path.
        seconds: the duration.
        seed: the seed of the random actions.
        waits: whether the visitor waits for each answer.

    Returns:
        The number of actions.

    Raises:
        PageError: if the page shows a fault; the message ends with the last actions.
    """
    random_ = random.Random(f"{page} {seed} {waits}")
    async with connect(url, subprotocols=["streamlit"], max_size=None) as stream:
        visitor = Visitor(stream, random_)
        listening = asyncio.create_task(visitor.listen())

        async def alive(doing):
            done, _ = await asyncio.wait({listening, asyncio.create_task(doing)}, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()

        try:
            await alive(_visit(visitor, page))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await alive(visitor.move())
                if waits or random_.random() < 0.1:
                    await alive(visitor.settle())
                    visitor.warnings = [text for text in visitor.warnings if "link" in text]
                    if visitor.warnings:
                        raise PageError(visitor.warnings[0])
                else:
                    await asyncio.sleep(random_.expovariate(1 / 0.15))
            await alive(visitor.settle())
        except (PageError, ConnectionClosed) as error:
            raise PageError(f"{page}: {error}\n" + "\n".join(visitor.moves[-12:])) from None
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await listening
    await _opens(url, page, visitor)
    return len(visitor.moves)


async def _visit(visitor, page):
    await visitor.ask(visitor.screen.rerun())
    await visitor.settle()
    if page != HOME:
        await visitor.ask(visitor.screen.change_page(page))
        await visitor.settle()


async def _opens(url, page, visitor):
    """Open the last address that the page wrote in a new session, and check that every part of it is accepted."""
    async with connect(url, subprotocols=["streamlit"], max_size=None) as stream:
        other = Visitor(stream, visitor.random)
        other.screen.query, other.screen.page = visitor.screen.query, visitor.screen.page
        listening = asyncio.create_task(other.listen())
        try:
            await other.ask(other.screen.rerun())
            await asyncio.wait({listening, asyncio.create_task(other.settle())}, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()
            if refused := [text for text in other.warnings if "link" in text]:
                raise PageError(f"{page}: its address ?{visitor.screen.query} is refused: {refused}")
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await listening


@contextmanager
def server(port):
    """Start a server and yield the address of its stream."""
    environment = os.environ | {"ATTENTION_LAB_PROFILE": "hosted", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "streamlit", "run", "app", "--server.port", str(port), "--server.headless", "true"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).read()
                break
            if process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(1)
        yield f"ws://127.0.0.1:{port}/_stcore/stream"
    finally:
        process.terminate()
        process.wait()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    """Run the visitors on the requested pages and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=discover(), metavar="page", help=f"of {', '.join(discover())}")
    parser.add_argument("--seconds", type=float, default=300.0, help="on each page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--url", help="of the stream of a running server")
    asked = parser.parse_args()
    with nullcontext(asked.url) if asked.url else server(_free_port()) as url:
        return max([_try(url, page, asked.seconds / 2, asked.seed, waits) for page in asked.pages for waits in (1, 0)])


def _try(url, page, seconds, seed, waits):
    text = f"{page}, {'waits' if waits else 'does not wait'}"
    try:
        print(f"{text}: {asyncio.run(press(url, page, seconds, seed, waits=waits))} moves", flush=True)
    except PageError as error:
        print(f"{text}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
