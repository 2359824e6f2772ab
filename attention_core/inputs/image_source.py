"""``ImageSource``: the pixels of an image with noise as tokens."""

import hashlib
import math
from dataclasses import dataclass, field, replace

from torch import Tensor

from attention_core.errors import InputError, Names, Notice
from attention_core.inputs import image
from attention_core.inputs.npz import printable
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Load, Source, first_tokens
from attention_core.limits import current


@dataclass(frozen=True, repr=False)
class ImageSource(Source):
    """A photograph with added noise, whose pixels are the tokens; see ``attention_core.inputs.image``.

    Attributes:
        photo: name of an included photograph, or of an uploaded file.
        size: side of the pixel grid; the number of tokens is its square.
        patch: side of the patch around a pixel, one of ``image.PATCHES``.
        noise: standard deviation of the added noise, where black is 0 and white is 1.
        seed: seed of the noise.
        strength: the filter strength h of non-local means; a smaller value makes attention sharper.
        digest: SHA-256 of an uploaded file; empty for an included photograph.
        data: the bytes of an uploaded file.
    """

    photo: str = image.PHOTOS[0]
    size: int = 48
    patch: int = 5
    noise: float = 0.1
    seed: int = 0
    strength: float = 0.1
    digest: str = ""
    data: bytes = field(default=b"", repr=False, compare=False)

    key = "image"
    may_be_trained = False

    @classmethod
    def of(cls, name: str, data: bytes, **settings: int | float) -> "ImageSource":
        """Return the source of an uploaded file with these settings, without unprintable characters in its name."""
        return cls(printable(name), digest=hashlib.sha256(data).hexdigest(), data=data, **settings)  # type: ignore[arg-type]

    def clean(self, size: int | None = None) -> Tensor:
        """Return the image without noise at its own size or another, ``[size, size, c]`` float64 from 0 to 1.

        Raises:
            InputError: if the file cannot be read.
        """
        return self._read(size or self.size)[0]

    def noisy(self, size: int | None = None) -> Tensor:
        """Return the image with noise; arguments, result and errors are as in ``clean``."""
        return image.add_noise(self.clean(size), self.noise, self.seed)

    def _read(self, size: int) -> tuple[Tensor, tuple[Notice, ...]]:
        max_side = current().picture_side
        if not image.MIN_SIDE <= self.size <= max_side or self.patch not in image.PATCHES:
            raise InputError(
                "The pixel grid is {size}, and the patch size is {patch}. Choose a grid from {least} to {most} and "
                "one of the patch sizes {patches}.",
                size=self.size,
                patch=self.patch,
                least=image.MIN_SIDE,
                most=max_side,
                patches=Names(map(str, image.PATCHES)),
            )
        if not (0 <= self.noise <= 1 and 0.01 <= self.strength <= 10 and self.seed >= 0):
            raise InputError(
                "Choose a noise level from 0 to 1, a filter strength from 0.01 to 10, and a seed of at least 0."
            )
        if self.digest:
            return image.read_photo(self.data, self.photo, size)
        if self.photo not in image.PHOTOS:
            raise InputError(
                "There is no photograph {name!r}. Choose one of {names}.", name=self.photo, names=Names(image.PHOTOS)
            )
        return image.read_photo(image.included(self.photo), self.photo, size)[0], ()

    def whole(self) -> QKV:
        """Return the ``QKV`` of the whole pixel grid.

        Raises:
            InputError: if the file cannot be read.
        """
        return self._record(self.size)

    def _load_original(self, tokens: int | None) -> QKV:
        """Return the ``QKV`` of the first ``tokens`` pixels of the whole grid.

        For None, return the ``QKV`` of a grid small enough to be drawn as a matrix.
        """
        if tokens is not None:
            return first_tokens(self.whole(), tokens)
        side = min(self.size, math.isqrt(current().matrix_tokens))
        qkv = self._record(side)
        if side == self.size:
            return qkv
        notice = Notice(
            "The pixel grid has {size} × {size} pixels, but matrices are drawn for at most {drawn} × {drawn} pixels.",
            (("size", self.size), ("drawn", side)),
        )
        return replace(qkv, notices=(*qkv.notices, notice), total_tokens=self.size**2)

    def _record(self, size: int) -> QKV:
        notices = self._read(size)[1]
        return image.from_pixels(
            self.noisy(size),
            patch=self.patch,
            strength=self.strength,
            origin=f"{self.photo} {size} × {size}",
            notices=notices,
        )

    def max_tokens(self, record: QKV) -> int:
        """Return the number of pixels of the whole grid, limited by the profile."""
        return min(self.size**2, current().sweep_tokens)

    def at_length(self, tokens: int, longest: int, load: Load) -> QKV:
        """Return the ``QKV`` of the first pixels of the whole grid."""
        return first_tokens(load(self, self.size**2), tokens)

    def reseeded(self, seeds: int) -> tuple[tuple[int | None, Source], ...]:
        """Return one pair of seed and source for each seed of the noise."""
        return tuple((seed, replace(self, seed=seed)) for seed in range(self.seed, self.seed + seeds))

    @property
    def code(self) -> str:
        """The Python expression that makes this source again; an uploaded photo is read from a placeholder path."""
        if not self.digest:
            return super().code
        settings = ", ".join(
            f"{name}={getattr(self, name)!r}" for name in ("size", "patch", "noise", "seed", "strength")
        )
        read = 'open("your-photo.png", "rb").read()'
        return f"ac.inputs.ImageSource.of({self.photo!r}, {read}, {settings}{self._positions_code})"
