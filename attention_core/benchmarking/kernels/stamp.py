"""The state of the device during a measurement: driver, clocks, power and temperature."""

import shutil
import subprocess
from dataclasses import asdict

import torch

from attention_core.benchmarking import device

QUERY_FIELDS = {
    "driver": "driver_version",
    "SM clock, MHz": "clocks.sm",
    "memory clock, MHz": "clocks.mem",
    "power, W": "power.draw",
    "power limit, W": "power.limit",
    "temperature, °C": "temperature.gpu",
}
"""Fields queried from ``nvidia-smi``, by their names in a stamp."""


def device_stamp(name: str) -> dict[str, str]:
    """Return the machine, date and device state as strings; values that the driver does not report are ``unknown``.

    Args:
        name: one of ``device.devices()``.
    """
    machine = {key: str(value) for key, value in asdict(device.stamp(name)).items()}
    if name != "cuda":
        return machine
    libraries = {"CUDA": str(torch.version.cuda), "cuDNN": str(torch.backends.cudnn.version())}
    return {**machine, **libraries, **device_state()}


def device_state() -> dict[str, str]:
    """Return the current state of the first device, as reported by its driver."""
    tool = shutil.which("nvidia-smi")
    values: list[str] = []
    if tool is not None:
        command = [tool, f"--query-gpu={','.join(QUERY_FIELDS.values())}", "--format=csv,noheader,nounits", "--id=0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        values = [value.strip() for value in done.stdout.partition("\n")[0].split(",")] if done.returncode == 0 else []
    if len(values) != len(QUERY_FIELDS):
        return dict.fromkeys(QUERY_FIELDS, "unknown")
    return dict(zip(QUERY_FIELDS, values, strict=True))
