"""The command ``attention-lab``, which starts the server of the web app.

The app's code imports its packages as ``app`` and ``pages``. An installed wheel contains both inside
``attention_lab``, so that they do not collide with other packages of these names. The command therefore adds their
folder to the import path of the server process.
"""

import importlib.util
import sys
from pathlib import Path


def folder() -> Path:
    """Return the folder that holds ``app`` and ``pages``: in a wheel this package, in a checkout its parent."""
    package = Path(__file__).parent
    return package if (package / "app").is_dir() else package.parent


def main() -> None:
    """Put the folder that holds ``app`` and ``pages`` first on the path, and run the command."""
    sys.path.insert(0, str(folder()))
    if importlib.util.find_spec("streamlit") is None:
        sys.exit("The app needs packages that are not installed. Run: pip install 'attention-lab[app]'")
    from app.server.command import main as run

    run()
