"""``attention-lab``: the app as it is installed, started from any folder."""

import sys
from pathlib import Path

from streamlit.web import cli


def main() -> None:
    """Run the server; arguments are those of ``streamlit run``."""
    sys.argv = ["streamlit", "run", str(Path(__file__).parent), *sys.argv[1:]]
    cli.main(prog_name="attention-lab")
