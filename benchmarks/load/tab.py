"""The connection of a simulated browser tab to the server: loading the page, cookies, the websocket, and requests."""

import asyncio
import random
import re
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from benchmarks.load.screen import Screen

LARGEST = 256 * 2**20
"""Bytes of a message above which the connection is closed."""
AGENT = "Mozilla/5.0 (X11; Linux x86_64) AttentionLabLoad/1.0"
HEAD = {"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate"}
ASSET = re.compile(r'(?:src|href)="([^"]+\.(?:js|css))"')


class RefusedError(ValueError):
    """An error for a request that the load test does not carry out; its message is one sentence about what to do."""


class LostError(ConnectionError):
    """An error for a closed connection or an unreachable server."""


def loopback(address: str) -> str:
    """Return an address without its path, if it belongs to this machine.

    Raises:
        RefusedError: if it does not.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    with suppress(ValueError):
        if parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback):
            return f"{parts.scheme}://{parts.netloc}"
    raise RefusedError(f"{address} is not on this machine: give an address like http://127.0.0.1:8501.")


class Counted(ClientConnection):
    """A connection that counts incoming bytes as they were sent, compressed."""

    wire = 0

    def data_received(self, data: bytes) -> None:
        """Count bytes from the network and process them."""
        self.wire += len(data)
        super().data_received(data)


class Tab:
    """One visitor's browser tab.

    Attributes:
        screen: the state of the page.
        wire: bytes received over the websocket, as sent.
        bytes: bytes of the messages, decompressed.
        messages: the number of messages.
        lost: the number of reconnections that did not find their session.
        gone: an event that is set while there is no connection.
        dropped: whether this client broke off the last connection.
    """

    def __init__(self, server: str, path: str = "", query: str = "", *, assets: bool = False) -> None:
        """Set the tab's address.

        Args:
            server: ``http://127.0.0.1:<port>``.
            path: the page's path.
            query: the query of the address.
            assets: whether to load the page's scripts and styles, as a browser's first visit does.
        """
        self.server = loopback(server)
        self.screen = Screen(f"{self.server}/{path}", query)
        self.wire = self.bytes = self.messages = self.lost = 0
        self.gone, self.dropped = asyncio.Event(), False
        self._assets = assets
        self._cookies: dict[str, str] = {}
        self._socket: Counted | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answer: asyncio.Future[None] | None = None
        self._awaited, self._timed = "", {}

    async def open(self) -> None:
        """Load the page and wait until it is drawn.

        Raises:
            LostError: if the server cannot be reached or closes the connection.
        """
        try:
            await self._load()
        except (httpx2.HTTPError, OSError) as error:
            raise LostError(f"the page does not load: {type(error).__name__}") from error
        await self._connect()
        await self.ask(self.screen.rerun())

    async def reconnect(self) -> None:
        """Connect again after a lost connection, as a browser does, and redraw the page.

        Raises:
            LostError: if that fails.
        """
        session = self.screen.session
        await self._connect()
        await self.ask(self.screen.rerun())
        self.lost += self.screen.session != session

    async def ask(self, request: BackMsg, fragment: str = "") -> None:
        """Send a request and wait for the end of the run that answers it.

        Args:
            request: a request for a run.
            fragment: the requested fragment; empty for the whole page.

        Raises:
            LostError: if the server closes the connection.
        """
        if self._socket is None:
            raise LostError("the connection was lost before anything was asked")
        self._answer, self._awaited = asyncio.get_running_loop().create_future(), fragment
        try:
            await self._socket.send(request.SerializeToString())
            await self._answer
        except (WebSocketException, OSError) as error:
            raise LostError(f"the connection was lost: {error}"[:120]) from error
        finally:
            self._answer = None

    async def settle(self) -> None:
        """Wait until the page makes no more automatic reruns."""
        while self.screen.timers:
            await asyncio.sleep(0.1)

    async def move(self, rng: random.Random) -> bool:
        """Change a random slider, choice or switch, or open a container; return False if the page has none of these.

        Raises:
            LostError: as in ``ask``.
        """
        if (move := self.screen.move(rng)) is None:
            return False
        await self.ask(*move)
        return True

    def drop(self) -> None:
        """Break off the connection without closing it properly."""
        if self._socket:
            self.dropped = True
            self._socket.transport.abort()

    async def close(self) -> None:
        """Close the tab."""
        socket, self._socket = self._socket, None
        for task in self._tasks:
            task.cancel()
        if socket:
            socket.transport.abort()
            with suppress(Exception):
                await socket.wait_closed()

    # -- private methods

    async def _load(self) -> None:
        address = self.screen.url + (f"?{self.screen.query}" if self.screen.query else "")
        # ``verify=False``, because loading certificates takes 20 ms, and a loopback address needs none.
        async with httpx2.AsyncClient(verify=False, timeout=None, trust_env=False, headers=HEAD) as client:
            page = await client.get(address)
            page.raise_for_status()
            further = [f"{self.server}/_stcore/{each}" for each in ("health", "host-config")]
            if self._assets:
                further += [urljoin(f"{self.server}/", path) for path in ASSET.findall(page.text)]
            for answer in await asyncio.gather(*map(client.get, further)):
                answer.raise_for_status()
            self._cookies = dict(client.cookies)

    @property
    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    async def _connect(self) -> None:
        # Like a browser, the tab sends its token and session in the list of subprotocols. Only the first entry is a
        # real subprotocol.
        token = self._cookies.get("_streamlit_xsrf", "PLACEHOLDER_AUTH_TOKEN")
        protocols = ["streamlit", token, *([self.screen.session] if self.screen.session else [])]
        try:
            socket = await connect(
                self.server.replace("http", "ws", 1) + "/_stcore/stream",
                create_connection=Counted,
                origin=self.server,
                subprotocols=protocols,
                additional_headers={"Cookie": self._cookie} if self._cookies else None,
                user_agent_header=AGENT,
                ping_interval=None,
                open_timeout=None,
                max_size=LARGEST,
                max_queue=None,
                proxy=None,
            )
        except (WebSocketException, OSError) as error:
            raise LostError(f"the websocket does not open: {type(error).__name__}") from error
        self._socket, self.dropped = socket, False
        self.gone.clear()
        self._start(self._listen(socket))

    def _start(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, socket: Counted) -> None:
        read, before = self.screen.read, 0
        try:
            while True:
                data = await socket.recv(decode=False)
                self.messages += 1
                self.bytes += len(data)
                self.wire, before = self.wire + socket.wire - before, socket.wire
                finished = read(data)
                if self.screen.timers != self._timed:
                    self._timed = dict(self.screen.timers)
                    for fragment, seconds in self._timed.items():
                        self._start(self._repeat(socket, fragment, seconds))
                if finished and self._answer and not self._answer.done():
                    whole = not finished.fragments
                    if whole or self._awaited in finished.fragments:
                        self._answer.set_result(None)
        except (WebSocketException, OSError) as error:
            if self._socket is socket:
                self._socket = None
                self.gone.set()
            if self._answer and not self._answer.done():
                self._answer.set_exception(LostError(f"the connection was lost: {error}"[:120]))

    async def _repeat(self, socket: Counted, fragment: str, seconds: float) -> None:
        """Request a fragment's rerun at a fixed interval, as the browser does for ``run_every``."""
        with suppress(WebSocketException, OSError):
            while True:
                await asyncio.sleep(seconds)
                if self.screen.timers.get(fragment) != seconds:
                    return
                await socket.send(self.screen.rerun(fragment, automatic=True).SerializeToString())
