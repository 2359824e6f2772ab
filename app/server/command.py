"""The ``attention-lab`` command, which starts the installed app from any folder."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Run the server; options that are not declared here are passed on to ``streamlit run``."""
    parser = argparse.ArgumentParser(
        prog="attention-lab", allow_abbrev=False, epilog="All other options are those of streamlit run."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('attention-lab')}")
    parser.add_argument("--replicas", type=int, default=1, help="processes of the app, behind HAProxy if several")
    parser.add_argument("--port", "--server.port", type=int, default=8501, help="port to listen on (%(default)s)")
    parser.add_argument("--address", "--server.address", default="", help="address to listen on (all)")
    options, others = parser.parse_known_args()
    if options.replicas < 1:
        parser.error("--replicas must be at least 1")
    if options.replicas == 1:
        bind = [f"--server.port={options.port}", *([f"--server.address={options.address}"] if options.address else [])]
        streamlit([*bind, *others])
    else:
        from app.server.replicas import serve

        serve(options.replicas, options.address, options.port, others)


def streamlit(arguments: Sequence[str]) -> None:
    """Run one process of the app with the given arguments of ``streamlit run``."""
    from streamlit.web import cli

    sys.argv = ["streamlit", "run", str(Path(__file__).parent.parent), *arguments]
    cli.main(prog_name="attention-lab")
