"""Tests of the load client: it follows a browser's protocol, counts correctly, and respects its limits."""

import asyncio
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest
from driver import complete
from streamlit.proto.Checkbox_pb2 import Checkbox
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider

from attention_core.inputs.trained import run_from_words
from benchmarks import drag
from benchmarks.load import profiler, server
from benchmarks.load.__main__ import main
from benchmarks.load.report import BEFORE, saturation, seconds, summary, text
from benchmarks.load.results import Cost, Process, Profile, Record, Result, Waits, waits
from benchmarks.load.scenarios import MOST_SECONDS, MOST_VISITORS, SCENARIOS, Scenario, run, scenario
from benchmarks.load.screen import Screen, Widget
from benchmarks.load.tab import LostError, RefusedError, Tab, loopback
from benchmarks.load.visitors import LAYERS, Log, Visitor, pages_of

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Yield a server of the small app."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    command = (
        f"streamlit run {HERE / 'load_toy.py'} --server.address 127.0.0.1 --server.port {{port}} "
        "--server.headless true --server.fileWatcherType none --browser.gatherUsageStats false"
    )
    with pytest.MonkeyPatch.context() as patch:
        # An installed checkout does not offer ``app`` under this name.
        patch.setenv("PYTHONPATH", str(HERE.parents[1]))
        with server.started(command, address, tmp_path_factory.mktemp("toy") / "log") as pid:
            yield address, pid


def process_run(screen, run, *messages, fragment=""):
    """Process a run with these messages and return the hashes that the next request names."""
    begin, end = ForwardMsg(), ForwardMsg()
    begin.new_session.config.max_cached_message_age = 2
    end.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    for each in (begin, end):
        each.metadata.run.script_run_id = f"run {run}"
        each.metadata.run.fragment_ids.extend([fragment] if fragment else [])
    for message in (begin, *messages, end):
        screen.read(message.SerializeToString())
    assert not screen.errors
    return set(screen.rerun().rerun_script.cached_message_hashes)


def test_a_browser_drops_a_message_two_runs_after_its_last_use():
    large, again, screen = ForwardMsg(hash="large"), ForwardMsg(ref_hash="large"), Screen("http://127.0.0.1/")
    large.delta.new_element.markdown.body = "much"
    large.metadata.cacheable = True
    assert process_run(screen, 0, large) == {"large"}
    for at in range(1, 6):
        assert process_run(screen, at, again) == {"large"}
    for at in range(6, 12):  # A fragment's runs drop only messages that the fragment has drawn.
        assert process_run(screen, at, fragment="another") == {"large"}
    assert process_run(screen, 12, again) == {"large"}
    assert process_run(screen, 13) == {"large"}
    assert process_run(screen, 14) == set()


def visit(toy, path, action, query=""):
    """Open a page in a tab, run ``what`` on it, close the tab and return it."""

    async def go():
        tab = Tab(toy[0], path, query)
        async with asyncio.timeout(20):
            await tab.open()
            try:
                await action(tab)
            finally:
                await tab.close()
        return tab

    return complete(go())


async def do_nothing(_):
    """Do nothing on the page."""


def address_values(tab):
    """Return the query that the app last wrote into the address."""
    return {name: value for name, [value] in parse_qs(tab.screen.query).items()}


def short_id(id):
    return id.rpartition("-")[2]


def knob_ids(tab):
    return [short_id(widget.id) for widget, _ in tab.screen.knobs()]


async def set_value(tab, name, value):
    """Set one widget to a value."""
    [(widget, fragment)] = [each for each in tab.screen.knobs() if short_id(each[0].id) == name]
    tab.screen.values[widget.id] = widget.field, value
    await tab.ask(tab.screen.rerun(fragment), fragment)


def test_a_page_opens_by_its_address(toy):
    tab = visit(toy, "entropy", do_nothing, "layer=4")
    assert knob_ids(tab) == ["there"]
    assert address_values(tab) == {"layer": "4"}
    assert tab.screen.page == tab.screen.pages["entropy"]
    assert tab.screen.errors == []


def test_a_moved_slider_reaches_the_app_and_stays(toy):
    async def move(tab):
        await set_value(tab, "level", [7.0])
        await tab.ask(tab.screen.rerun())

    tab = visit(toy, "", move)
    assert address_values(tab)["level"] == "7"
    assert address_values(tab)["runs"] == "3"


def test_a_value_that_the_server_sets_is_taken_over_and_stays(toy):
    async def move(tab):
        await set_value(tab, "level", [7.0])
        await set_value(tab, "unit", "long")
        await set_value(tab, "only", [0.25])

    assert address_values(visit(toy, "", move))["level"] == "1"


def test_widgets_that_a_run_no_longer_draws_are_not_moved(toy):
    async def move(tab):
        await set_value(tab, "unit", "long")
        assert knob_ids(tab) == ["level", "unit", "only", "first", "second", "on"]
        await set_value(tab, "unit", "short")

    tab = visit(toy, "", move)
    assert knob_ids(tab) == ["level", "unit", "first", "second", "on"]
    assert len(tab.screen.values) == 5


def sent_ids(tab):
    return sorted(short_id(state.id) for state in tab.screen.rerun().rerun_script.widget_states.widgets)


def test_widgets_in_an_unopened_popover_are_not_sent(toy):
    class Inside(random.Random):
        """Random numbers that select the widgets inside the popover first."""

        def sample(self, population, k):
            return sorted(population, key=len, reverse=True)[:k]

    async def move(tab):
        assert sent_ids(tab) == ["level", "on", "unit"]
        assert await tab.move(Inside())
        assert sent_ids(tab) == ["first", "level", "on", "second", "unit"]

    visit(toy, "", move)


def test_a_form_is_opened_by_the_pages_script_and_settings_by_their_chip(toy):
    async def open_all(tab):
        assert knob_ids(tab) == ["toy.form", "variants.chip.local"]
        for name in knob_ids(tab):
            [path] = [path for path, node in tab.screen.nodes.items() if node.widget and node.widget.key == name]
            await tab.ask(*tab.screen.change(path))
        assert knob_ids(tab) == ["inside", "variants.chip.local", "setting"]
        for _ in range(9):
            assert await tab.move(random.Random(_))
        assert tab.screen.errors == []

    tab = visit(toy, "forms", open_all)
    assert sent_ids(tab)[:2] == ["inside", "page_script.mount"]


def test_a_widget_in_a_fragment_runs_only_the_fragment(toy):
    async def move(tab):
        await set_value(tab, "on", True)
        await set_value(tab, "on", False)
        await set_value(tab, "on", True)

    tab = visit(toy, "", move)
    assert address_values(tab)["runs"] == "1"
    assert address_values(tab)["parts"] == "4"
    assert knob_ids(tab) == ["level", "unit", "first", "second", "on"]


def test_after_a_page_change_moves_happen_on_the_new_page(toy):
    async def move(tab):
        await tab.ask(tab.screen.change_page("causal", "layer=2"))
        assert knob_ids(tab) == ["there"]
        await set_value(tab, "there", True)

    tab = visit(toy, "", move)
    assert knob_ids(tab) == ["there"]
    assert address_values(tab) == {"layer": "2"}
    assert tab.screen.url.endswith("/causal")


def test_a_large_message_is_sent_once(toy):
    received = []

    async def move(tab):
        received.append(tab.bytes)
        await set_value(tab, "level", [7.0])
        received.append(tab.bytes)
        await set_value(tab, "level", [8.0])
        received.append(tab.bytes)

    tab = visit(toy, "", move)
    assert received[0] > 50_000
    assert received[1] - received[0] < 10_000
    assert received[2] - received[1] < 10_000
    assert tab.screen.errors == []


def test_a_page_that_runs_by_itself_is_followed_until_it_stops(toy):
    async def settle(tab):
        assert tab.screen.timers
        await tab.settle()

    assert int(address_values(visit(toy, "ticking", settle))["ticks"]) >= 3


def test_an_exception_on_a_page_is_an_error(toy):
    [error] = visit(toy, "inside", do_nothing).screen.errors
    assert "this page is broken" in error


def test_a_dropped_connection_resumes_its_session(toy):
    async def drop(tab):
        await set_value(tab, "level", [7.0])
        session = tab.screen.session
        tab.drop()
        await tab.gone.wait()
        with pytest.raises(LostError):
            await tab.ask(tab.screen.rerun())
        await tab.reconnect()
        assert tab.screen.session == session

    tab = visit(toy, "", drop)
    assert tab.lost == 0
    assert address_values(tab)["level"] == "7"


def test_a_lost_session_is_counted(toy):
    async def drop(tab):
        await set_value(tab, "level", [7.0])
        tab.drop()
        await tab.gone.wait()
        tab.screen.session = "another"
        await tab.reconnect()

    tab = visit(toy, "", drop)
    assert tab.lost == 1
    assert address_values(tab)["level"] == "7"  # The browser still has the value.


def test_a_server_that_does_not_answer_is_reported_as_an_error():
    with pytest.raises(LostError, match="does not load"):
        complete(Tab("http://127.0.0.1:9").open())


def test_the_same_seed_makes_the_same_moves(toy):
    async def move(tab):
        rng = random.Random(3)
        for _ in range(6):
            assert await tab.move(rng)

    first, second = (visit(toy, "", move) for _ in range(2))
    assert first.screen.values == second.screen.values
    assert address_values(first) == address_values(second)


def simulate_visitor(toy, page, until, act=None, drop=None):
    """Run a simulated visitor in a tab until a condition on the log is met; the connection may drop after an action."""

    async def go(drop=drop):
        log = Log()
        tab = Tab(toy[0], page)
        visitor = Visitor(tab, log, random.Random(4), (0.0, 0.01))
        task = asyncio.create_task(act(visitor) if act else visitor.browse(page))
        async with asyncio.timeout(60):
            while not until(log):
                await asyncio.sleep(0.01)
                if drop and "knob" in wait_kinds(log):
                    drop(tab)
                    drop = None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await tab.close()
        return log, tab

    return complete(go())


def wait_kinds(log):
    return [wait.kind for wait in log.waits]


def test_a_visitor_moves_existing_widgets_and_changes_the_page(toy):
    log, _ = simulate_visitor(
        toy, "matrices", lambda log: wait_kinds(log).count("knob") >= 3 and "change" in wait_kinds(log)
    )
    assert wait_kinds(log)[0] == "first"
    assert wait_kinds(log).count("knob") > wait_kinds(log).count("change")
    assert all(wait.seconds > 0 for wait in log.waits)


def test_a_sweeper_runs_every_sweep_in_turn(toy):
    log, tab = simulate_visitor(toy, "entropy", lambda log: log.finished[7] == 6, lambda visitor: visitor.sweep(7))
    done = [wait for wait in log.waits if wait.answered]
    assert [wait.kind for wait in done] == ["arrival", *["sweep"] * 6]
    assert 0 <= int(address_values(tab)["layer"]) < LAYERS
    assert not log.errors


def test_a_sweeper_trains_a_model_after_all_sweeps(toy):
    _, tab = simulate_visitor(toy, "entropy", lambda log: log.finished[7] == 5, lambda visitor: visitor.sweep(7))
    assert tab.screen.url.endswith("/masks")
    run = run_from_words(parse_qs(tab.screen.query)["trained"])
    assert run.steps == 200


@pytest.mark.parametrize(("key", "moved"), [("input", False), ("model", False), ("noise", True)])
def test_visitors_keep_the_kind_of_input(key, moved):
    assert Widget("checkbox", f"$$ID-hash-{key}", Checkbox(id=key)).knob == moved


def test_an_exception_is_counted_each_time_it_is_shown(toy):
    log, _ = simulate_visitor(toy, "inside", lambda log: wait_kinds(log).count("knob") >= 1)
    [(error, count)] = log.errors.items()
    assert "broken" in error
    assert sum(wait.answered for wait in log.waits) <= count <= len(log.waits)


def test_a_connection_that_the_client_drops_is_reopened_without_an_error(toy):
    log, tab = simulate_visitor(toy, "matrices", lambda log: log.reconnected, drop=Tab.drop)
    assert log.reconnected == 1
    assert tab.lost == 0
    assert not log.errors


def test_a_connection_lost_for_another_reason_is_an_error(toy):
    log, _ = simulate_visitor(
        toy, "matrices", lambda log: log.reconnected, drop=lambda tab: tab._socket.transport.abort()
    )
    assert log.reconnected == 1
    assert [error for error in log.errors if "lost" in error]


@pytest.fixture(scope="module")
def crowd(toy):
    """Return the result of two visitors, one of whom opens a page that does not load in time."""
    chosen = Scenario(2, seconds=4, arrival=0.0, thinking=(0.0, 0.1))
    return complete(run("crowd", chosen, [toy[0]], [toy[1]], stamp={"system": "a test"}))


def test_an_overdue_answer_counts_with_its_wait_so_far(crowd):
    assert crowd.first.count == 2
    assert crowd.first.overdue >= 1
    assert (
        2 < crowd.first.longest <= crowd.seconds + 0.5
    )  # An answer takes less time than this, and closing may take a while.
    assert crowd.opening.count == crowd.first.count + crowd.change.count
    assert crowd.health.count >= 1


def test_the_stamp_has_the_speed_of_the_machine_before_and_under_load(crowd):
    assert crowd.stamp["system"] == "a test"
    before, under_load = (float(each.split()[0]) for each in crowd.stamp["a loop before, under load"].split(", "))
    assert before > 0
    assert under_load > 0


def test_the_server_is_measured_with_its_children(crowd):
    [process] = crowd.processes
    assert process.count == 1
    assert process.name.startswith("streamlit run")
    assert 0.1 < process.cpu < 60
    assert 2**25 < crowd.pss < 2**31
    assert crowd.client > 0
    assert crowd.bytes > 10_000
    assert all(files > 3 for _, _, files in crowd.over_time)


def test_only_the_processes_of_a_tree_are_measured():
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE) as parent:
        until = time.monotonic() + 10
        while len(found := server.descendants([parent.pid])) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        watch = server.Watch([parent.pid])
        watch.measure()
        parent.communicate(b"\n")
    assert len(found) == 2
    assert os.getpid() not in found
    assert sum(process.count for process in watch.processes()) == 2
    assert server.descendants([parent.pid]) == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:8501", "http://localhost:8501/page", "http://[::1]:8501"])
def test_addresses_on_this_machine_are_accepted(address):
    assert loopback(address) in address


@pytest.mark.parametrize(
    "address",
    ["http://example.com", "http://10.0.0.1:8501", "http://0.0.0.0:80", "https://127.0.0.1", "127.0.0.1:8501", "http://",
     "http://127.0.0.1.example.com", "http://localhost@example.com"],
)  # fmt: off
def test_other_machines_are_refused_in_one_sentence(address):
    with pytest.raises(RefusedError, match=r"^[^.].* is not on this machine: give an address like .*\.$"):
        loopback(address)
    with pytest.raises(RefusedError):
        Tab(address)


def test_the_command_refuses_another_machine_before_it_starts(capsys, tmp_path):
    files = ["--out", str(tmp_path / "r.json"), "--report", str(tmp_path / "LOAD.md")]
    with pytest.raises(SystemExit):
        main(["20", "--url", "http://example.com", *files])
    assert "is not on this machine" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("visitors", "sweepers", "long"), [(MOST_VISITORS, 1, 60), (0, 0, 60), (1, 0, MOST_SECONDS + 1), (1, 0, 0)]
)
def test_loads_beyond_the_limits_are_refused(visitors, sweepers, long):
    with pytest.raises(RefusedError, match=f"the {MOST_VISITORS} visitors and {MOST_SECONDS} s that"):
        Scenario(visitors, sweepers, long)


def test_a_scenario_is_chosen_by_its_name():
    assert scenario("200+10") == Scenario(200, 10)
    assert scenario("30+2", 5) == Scenario(30, 2, seconds=5)
    assert SCENARIOS["soak"].seconds == 1800
    with pytest.raises(RefusedError, match="no scenario many"):
        scenario("many")


@pytest.mark.parametrize("count", [20, 40, 100, 200])
def test_half_of_the_visitors_start_on_matrices_and_the_rest_spread(count):
    pages = pages_of(count)
    assert pages.count("matrices") == count / 2
    others = [pages.count(page) for page in ("masks", "inside", "")]
    assert max(others) - min(others) <= 1


def test_a_slider_of_two_ends_stays_in_order_and_on_its_stops():
    widget = Widget("slider", "s", Slider(id="s", min=0, max=1, step=0.25, default=[0, 0.25]))
    rng, value = random.Random(0), widget.default
    for _ in range(50):
        value = widget.random_value(value, rng)
        assert sorted(value) == value
        assert set(value) <= {0, 0.25, 0.5, 0.75, 1}


def test_a_widget_with_only_one_value_is_not_moved():
    widget = Widget("slider", "s", Slider(id="s", type=Slider.SELECT_SLIDER, options=["one"], default=[0]))
    assert widget.random_value(["one"], random.Random(0)) is None


def test_quantiles_are_waits_that_occurred():
    assert waits([*range(1, 21)], 2) == Waits(20, 2, 10, 19, 20)
    assert waits([*range(1, 12)]) == Waits(11, 0, 6, 11, 11)
    assert waits([3.0]) == Waits(1, 0, 3.0, 3.0, 3.0)
    assert waits([]).count == 0


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0123, "0.012"), (0.094, "0.094"), (0.996, "1.0"), (1.24, "1.2"), (9.96, "10"), (41.6, "42")]
)
def test_times_have_two_digits(value, shown):
    assert seconds(value) == shown


def result(name, visitors, sweepers=0, **changed):
    no_waits = {kind: Waits() for kind in ("knob", "opening", "first", "change", "sweep")}
    values = {"seconds": 90.0, "stamp": {"system": "Linux"}, "finished": [0] * sweepers, "errors": {}, **no_waits}
    return Result(name=name, visitors=visitors, sweepers=sweepers, **values | changed)


def test_a_report_without_measurements_has_the_earlier_table():
    written = text(Record())
    assert all(" | ".join(row) in written for row in BEFORE)
    assert "Now:" not in written


def test_the_report_lists_measurements_in_the_order_of_the_scenarios():
    many = result(
        "100+5",
        100,
        5,
        knob=waits([0.1, 0.2], 1),
        finished=[3, 0, 1, 1, 1],
        errors={"ValueError: no": 2},
        pss=2**30,
        processes=[Process("streamlit run", 2, 45.0, 2**30)],
        reconnected=4,
        lost=1,
        notes=["Said beside it."],
    )
    written = text(Record(results={"100+5": many, "20": result("20", 20)}))
    assert written.index("| 20 visitors | none |") < written.index(
        "| 100 visitors + 5 sweepers | 0.1 / 0.2 / 0.2 s (1 ov"
    )
    assert "2 times ValueError: no" in written
    assert "4 connections were reopened, 1 of them without their session." in written
    assert "1 sweepers finished no sweep." in written
    assert "| 1.00 GiB | 45 s (0.50 cores) |" in written
    assert "2 × streamlit run: 45 CPU s, 1024 MiB" in written
    assert "Said beside it." in written
    assert "not known" in written  # For the other result.


@pytest.mark.parametrize(
    ("waits_by_visitors", "share", "sentence"),
    [
        (
            {100: 0.1, 200: 0.31, 400: 1.2},
            1.0,
            "**200 visitors** wait at most 0.31 s for 95% of their moves; with 400 ",
        ),
        ({100: 0.1, 200: 0.49}, 1.0, "**200 visitors** wait at most 0.49 s for 95% of their moves."),
        ({200: 0.5}, 1.0, "With 200 visitors, 95% of the moves take at most 0.5 s."),
        ({100: 0.1, 200: 0.7, 400: 0.3}, 1.0, "**100 visitors** wait at most 0.1 s for 95% of their moves; with 200 "),
        ({100: 0.1, 200: 0.7}, 0.67, "With 67% of the cores: **100 visitors** wait at most 0.1 s"),
    ],
)
def test_the_report_begins_with_the_number_of_visitors_that_are_served_in_time(waits_by_visitors, share, sentence):
    results = [result(str(n), n, knob=waits([wait]), share=share) for n, wait in waits_by_visitors.items()]
    results += [result("100+5", 500, 5, knob=waits([0.1]), share=share)]  # Sweepers are another kind of load.
    assert any(sentence in line for line in saturation(results))
    assert sentence in text(Record(results={each.key: each for each in results}))


def test_a_run_without_moves_says_nothing_about_the_number_of_visitors():
    assert saturation([result("20", 20)]) == []


def test_results_with_fewer_cores_are_recorded_and_reported_separately():
    plain, limited = result("20", 20), result("20", 20, share=2 / 3)
    assert (plain.key, limited.key) == ("20", "20 at 67%")
    assert "| 20 visitors, 67% of the cores |" in text(Record(results={each.key: each for each in (plain, limited)}))


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr(server, "CGROUPS", ((tmp_path, server.CGROUPS[0][1]),))
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # In a real control group, rmdir also removes the files.
    return tmp_path


def test_a_share_of_the_cores_is_a_quota_of_the_process_and_its_children(cgroups):
    with server.limited_cores(0.5):
        (group,) = (each for each in cgroups.iterdir() if each.is_dir())
        cores = len(os.sched_getaffinity(0))
        quota, period = (int((group / f"cpu.cfs_{each}_us").read_text()) for each in ("quota", "period"))
        assert quota / period == cores / 2
        assert (group / "cgroup.procs").read_text() == str(os.getpid())
    assert (cgroups / "cgroup.procs").read_text() == str(os.getpid())
    assert not group.exists()


def test_a_process_that_still_ends_does_not_lose_the_results_of_limited_cores(cgroups, monkeypatch):
    def refuse(group):
        raise OSError("Device or resource busy")

    monkeypatch.setattr(Path, "rmdir", refuse)
    for _scenario in range(2):
        with server.limited_cores(0.5):
            pass
    assert (cgroups / "cgroup.procs").read_text() == str(os.getpid())


def test_the_cores_cannot_be_limited_without_control_groups(cgroups):
    (cgroups / "cgroup.procs").unlink()
    with pytest.raises(RefusedError, match="leave out --share"), server.limited_cores(0.5):
        pass
    with server.limited_cores(1):
        pass


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["20", "--share", "0"], "A share of 0 is not possible"),
        (["20", "--share", "1.5"], "A share of 1.5 is not possible"),
        (["cost", "--share", "0.5"], "costs do not depend on it"),
        (["20", "--share", "0.5", "--url", "http://127.0.0.1:1"], "Only a server that this command starts"),
    ],
)
def test_impossible_shares_of_the_cores_are_refused(arguments, sentence, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main([*arguments, "--out", str(tmp_path / "results.json"), "--report", str(tmp_path / "LOAD.md")])
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("last", "verdict"), [(1049, "flat"), (1051, "not flat"), (940, "not flat")])
def test_a_soak_is_flat_or_not_after_its_first_quarter(last, verdict):
    looks = [(float(i), 2**20 * (10 if i < 250 else 1000 if i < 600 else last), 30) for i in range(1001)]
    written = text(Record(results={"soak": result("soak", 100, 5, seconds=1000.0, over_time=looks)}))
    assert re.search(
        rf"from 1000 to {last} MiB \([-+][\d.]+%: {verdict}\) and open file descriptors from 30 to 30", written
    )
    assert "flat" not in text(Record(results={"20": result("20", 20, over_time=looks)})).partition("## How")[0]


def test_costs_and_the_profile_are_reported():
    profile = profiler.summary(
        {
            "run (/x/streamlit/runtime/scriptrunner/script_runner.py:1);_on_script_finished (/x/script_runner.py:9)": 6,
            "run (/x/app/router.py:1);gelu (/x/torch/nn/functional.py:3)": 3,
            "run (/x/app/router.py:1);dumps (/usr/lib/json/__init__.py:3)": 1,
        },
        "40",
        10.0,
    )
    assert profile.parts == {
        "collecting garbage after a run": 0.6,
        "attention: the core and torch": 0.3,
        "the pages' own code": 0.1,
    }
    assert profile.busy == 10 / (10 * profiler.RATE)
    written = text(Record(costs=[Cost("", 40, 0.0514, 0.02, 0.04, 0.01, 0.12, 45_000, 20_000, 251)], profile=profile))
    assert "| home | 0.051 | 0.040 | 0.010 | 0.020 | 0.120 | 251 | 45 | 40 |" in written
    assert "| collecting garbage after a run | 60.0% |" in written
    assert "`gelu (nn/functional.py)`" in written


@pytest.mark.parametrize(("cost", "verdict"), [(0.015, "met"), (0.016, "missed")])
def test_costs_of_moves_meet_or_miss_their_target(cost, verdict):
    profile = Profile("40", 10.0, 0.1, parts={"widgets": 0.49, "other": 0.4}, functions={})
    record = Record(costs=[Cost("matrices", 40, cost, 0, 0, 0, 0, 0, 0, 0)], profile=profile)
    assert f"| CPU time of a move: matrices, mean | 0.015 s | {cost} s | {verdict} |" in text(record)
    assert ("no single cause of the CPU time: the largest part, widgets, is 49%" in text(record)) == (
        verdict == "missed"
    )
    dominated = msgspec.structs.replace(record, profile=msgspec.structs.replace(profile, parts={"widgets": 0.51}))
    assert "no single cause" not in text(dominated)


@pytest.mark.parametrize(
    ("wait", "knob", "opening"), [(0.5, "met", "met"), (0.51, "missed", "met"), (1.1, "missed", "missed")]
)
def test_waits_of_200_visitors_meet_or_miss_their_targets(wait, knob, opening):
    written = text(Record(results={"200+10": result("200+10", 200, 10, knob=waits([wait]), opening=waits([wait]))}))
    assert f"| 200 visitors + 10 sweepers: knob, p95 | 0.5 s | {seconds(wait)} s | {knob} |" in written
    assert f"| 200 visitors + 10 sweepers: opening a page, p95 | 1 s | {seconds(wait)} s | {opening} |" in written
    assert "## Targets" not in text(Record(results={"100": result("100", 100, 0, knob=waits([wait]))}))


def test_a_saved_record_loads_unchanged(tmp_path):
    record = Record(results={"20": result("20", 20, knob=waits([0.1]))}, costs=[Cost("", 1, 0, 0, 0, 0, 0, 0, 0, 0)])
    record.save(tmp_path / "results.json")
    assert Record.load(tmp_path / "results.json").results["20"].knob == record.results["20"].knob
    assert Record.load(tmp_path / "none.json") == Record()


def test_an_empty_summary_says_none():
    assert summary(Waits()) == "none"


def test_the_committed_report_matches_the_committed_record():
    load = HERE.parent.parent / "benchmarks" / "load"
    assert (load.parent / "LOAD.md").read_text(encoding="utf-8") == text(Record.load(load / "results.json"))


def test_the_costs_of_an_external_server_need_its_process_ids(capsys, tmp_path):
    files = ["--out", str(tmp_path / "r.json"), "--report", str(tmp_path / "LOAD.md")]
    with pytest.raises(SystemExit):
        main(["cost", "--url", "http://127.0.0.1:9", *files])
    assert "name them with --pid" in capsys.readouterr().err


def test_the_drag_benchmark_counts_the_cpu_time_of_server_and_browser():
    server, browser = drag.cpu_seconds([os.getpid()])
    assert 0 < server <= browser


def test_workers_are_recognised_by_their_idle_priority():
    steps_back = "import os, time; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); print(); time.sleep(60)"
    worker = subprocess.Popen([sys.executable, "-u", "-c", steps_back], stdout=subprocess.PIPE)
    worker.stdout.readline()
    assert server.has_idle_priority(worker.pid)
    assert not server.has_idle_priority(os.getpid())
    worker.kill()
    worker.communicate()
    assert not server.has_idle_priority(worker.pid)  # The process is gone.
