"""The limits of devices (arithmetic per second, memory bandwidth), from the manufacturers' data sheets."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Roof:
    """The limits of one device.

    Attributes:
        flops: dense floating-point operations per second by type; float32 without tensor cores.
        bandwidth: memory bandwidth in bytes per second.
    """

    flops: dict[str, float]
    bandwidth: float

    def attainable(self, dtype: str, flops: float, bytes_moved: float) -> float | None:
        """Return the attainable operations per second of a call with ``flops`` operations and ``bytes_moved``.

        None for an unsupported type. Source: Williams et al. 2009, "Roofline", https://doi.org/10.1145/1498765.1498785.
        """
        peak = self.flops.get(dtype)
        return None if peak is None or bytes_moved <= 0 else min(peak, self.bandwidth * flops / bytes_moved)


def _roof(bandwidth: float, **teraflops: float) -> Roof:
    return Roof({name: 1e12 * value for name, value in teraflops.items()}, 1e9 * bandwidth)


ROOFS = {
    "H200": _roof(4800, bfloat16=989.4, float32=66.9),
    "H100 PCIe": _roof(2000, bfloat16=756.0, float32=51.0),
    "H100": _roof(3350, bfloat16=989.4, float32=66.9),
    "A100-SXM4-80GB": _roof(2039, bfloat16=312.0, float32=19.5),
    "A100 80GB PCIe": _roof(1935, bfloat16=312.0, float32=19.5),
    "A100-SXM4-40GB": _roof(1555, bfloat16=312.0, float32=19.5),
    "A100-PCIE-40GB": _roof(1555, bfloat16=312.0, float32=19.5),
    "L40S": _roof(864, bfloat16=362.05, float32=91.6),
    "L4": _roof(300, bfloat16=121.0, float32=30.3),
    "T4": _roof(320, float32=8.1),
    "V100-SXM2": _roof(900, float32=15.7),
}
"""Limits by a part of the name that the driver reports; the first match applies. Dense rates from data sheets."""


def roof_of(device: str) -> Roof | None:
    """Return the limits of a device by its name; None for a device that is not in the table."""
    name = f" {device} "
    # Only whole words match, so that "L4" does not match an L40.
    return next(
        (roof for part, roof in ROOFS.items() if re.search(rf"[ ]{re.escape(part)}(?![0-9A-Za-z])", name)), None
    )
