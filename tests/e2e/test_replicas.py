"""Browser tests of two replicas (processes of the app) behind the proxy: visitors keep their state when one dies."""

import os
import re
import signal
import stat
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from browser import BOARD, settle, switch, visit, words
from conftest import ROOT, free_port, serve
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Yield the process of the command, its address and the path of its log."""
    port, folder = free_port(), tmp_path_factory.mktemp("pair")
    command = [str(Path(sys.executable).parent / "attention-lab"), "--replicas=2", f"--port={port}"]
    environment = os.environ | {"TMPDIR": str(folder)}
    process = serve([*command, "--address=127.0.0.1"], port, folder, cwd=ROOT, env=environment)
    log = folder / "streamlit.log"
    until(lambda: f"http://127.0.0.1:{port}" in log.read_text(), seconds=60)
    yield process, f"http://127.0.0.1:{port}", log
    process.kill()


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)


def children(pid):
    found = " ".join(each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in found.split()]


def socket_of_workers(log):
    [found] = log.parent.glob("attention-lab-*/workers")
    return found


def kind(pid, log):
    """Return the kind of a process of the command: ``proxy``, ``parent`` (of all workers) or ``replica``."""
    if b"haproxy" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
        return "proxy"
    sockets = map(str.split, Path("/proc/net/unix").read_text().splitlines())
    listening = {f"socket:[{each[6]}]" for each in sockets if each[7:] == [str(socket_of_workers(log))]}
    open_files = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return "parent" if listening & open_files else "replica"


def kinds(pair):
    """Return the process ids of the command's processes by kind."""
    process, _, log = pair
    found = {"proxy": [], "parent": [], "replica": []}
    for pid in children(process.pid):
        with suppress(FileNotFoundError):  # The process may end at this moment.
            found[kind(pid, log)].append(pid)
    return found


def test_a_visitor_keeps_their_state_when_their_replica_dies(pair, page):
    _, address, log = pair
    visit(page, f"{address}/matrices?input=synthetic&n=24&heads=1&variants=softmax&variants=local")
    switch(page, "Difference")
    before = words(page)
    replicas, ended = kinds(pair)["replica"], log.read_text().count("was restarted")
    assert len(replicas) == 2
    # The first kill moves the visitor to the other replica, which is killed next.
    for dead, pid in enumerate(replicas, ended + 1):
        os.kill(pid, signal.SIGKILL)
        until(lambda: log.read_text().count("was restarted") == dead)  # noqa: B023
        until(lambda: len(kinds(pair)["replica"]) == 2)
        page.wait_for_timeout(1500)
        settle(page)
    assert words(page) == before
    expect(page.locator(BOARD)).to_be_visible()
    # The first change starts a new session from the address and is lost itself.
    for view in ("weights", "difference", "weights"):
        switch(page, view.capitalize())
    expect(page).not_to_have_url(re.compile("view="))
    assert words(page) == before - {"view=difference"}


def test_responses_are_compressed_and_name_no_software(pair):
    _, address, _ = pair
    asked = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Server"] is None
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "replica=" in answer.headers["Set-Cookie"]


def test_a_sweep_runs_in_a_worker_of_the_parent_that_all_replicas_share(pair, page):
    _, address, log = pair
    found = kinds(pair)
    [parent] = found["parent"]
    assert stat.S_IMODE(socket_of_workers(log).stat().st_mode) == 0o600
    assert not children(parent)
    visit(page, f"{address}/entropy?input=synthetic&n=24&heads=1&variants=softmax&h_longest=64&h_seeds=1")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert children(parent)
    assert not [pid for replica in found["replica"] for pid in children(replica)]


def test_all_processes_end_with_the_command(pair):
    process, _, log = pair
    found = kinds(pair)
    assert {kind: len(pids) for kind, pids in found.items()} == {"proxy": 1, "parent": 1, "replica": 2}
    left, workers = children(process.pid), children(*found["parent"])
    process.terminate()
    assert process.wait(20) == 0
    assert not [pid for pid in left if Path(f"/proc/{pid}").exists()]
    # Workers end when no session waits for their results.
    until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()])
    left_over = [found.name for found in log.parent.glob("attention-lab-*")]
    assert left_over == [f"attention-lab-{os.getuid()}.lock"], "which is of all servers of this user"
