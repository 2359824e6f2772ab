import os
import shutil
import socket
import subprocess
from importlib.metadata import version

import pytest

from app.server import command, replicas


@pytest.fixture
def started(monkeypatch):
    """Return a function that runs the command and gives the arguments of Streamlit or of the replicas it starts."""
    calls = []
    monkeypatch.setattr(command, "streamlit", lambda arguments: calls.append(arguments))
    monkeypatch.setattr(replicas, "serve", lambda *given: calls.append(given))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["attention-lab", *arguments])
        command.main()
        return calls.pop()

    return run


def test_one_process_runs_streamlit_itself(started):
    assert started() == ["--server.port=8501"]
    assert started("--server.port=80", "--server.headless=true") == ["--server.port=80", "--server.headless=true"]
    assert started("--address", "127.0.0.1") == ["--server.port=8501", "--server.address=127.0.0.1"]


def test_the_version_is_printed(started, capsys):
    with pytest.raises(SystemExit) as ended:
        started("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"attention-lab {version('attention-lab')}\n"


def test_several_replicas_run_behind_the_proxy(started):
    options = ["--replicas", "3", "--port", "80", "--theme.base=dark"]
    assert started(*options) == (3, "", 80, ["--theme.base=dark"])


def test_zero_replicas_are_refused(started, capsys):
    with pytest.raises(SystemExit):
        started("--replicas", "0")
    assert "at least 1" in capsys.readouterr().err


def test_a_missing_proxy_is_reported(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="apt-get install haproxy"):
        replicas.serve(2, "", 0, [])


def test_a_port_in_use_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(SystemExit, match=f"port {port} .*--port"):
            replicas.serve(2, "127.0.0.1", port, [])


def test_replicas_differ_only_in_their_port():
    ours, theirs = (text.splitlines() for text in (replicas.configuration([81, 82]), SHARED.read_text("utf-8")))
    assert ours[:-2] == theirs[:-1]
    assert [line.split()[2] for line in ours[-2:]] == ["127.0.0.1:81", "127.0.0.1:82"]


@pytest.mark.parametrize("which", ["here", "containers"])
def test_haproxy_accepts_the_configuration(tmp_path, which):
    file = tmp_path / "haproxy.cfg"
    file.write_text(replicas.configuration([8601, 8602]) if which == "here" else SHARED.read_text("utf-8"))
    path = shutil.which("haproxy", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    assert path, "The proxy's tests need HAProxy: apt-get install haproxy"
    names = {"ATTENTION_LAB_BIND": ":8501", "STREAMLIT_SERVER_COOKIE_SECRET": "x", "ATTENTION_LAB_REPLICA": "app:8501"}
    checked = subprocess.run([path, "-c", "-f", str(file)], env=os.environ | names, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "WARNING" not in checked.stderr


SHARED = replicas.FOLDER / "haproxy.cfg"
