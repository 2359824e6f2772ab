"""The command ``attention-lab``.

The code imports its packages as ``app`` and ``pages``. An installed wheel holds both inside ``attention_lab``, so that
they do not collide with other packages of these names. Only the process of the server finds them under the short names.
"""

import sys
from pathlib import Path


def main() -> None:
    """Put the folder that holds ``app`` and ``pages`` first on the path, and run the command."""
    package = Path(__file__).parent
    folder = package if (package / "app").is_dir() else package.parent  # in a checkout both lie beside this package
    sys.path.insert(0, str(folder))
    from app.server.command import main as run

    run()
