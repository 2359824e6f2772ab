"""The devices that torch can use on this machine, and the number of threads that torch and numpy use."""

import os

import torch

from attention_core.errors import InputError, SettingError

DEVICES = ("cpu", "cuda")


def devices() -> tuple[str, ...]:
    """Return the devices that torch sees, the CPU first."""
    return DEVICES if torch.cuda.is_available() else DEVICES[:1]


def check_device(device: str) -> str:
    """Return the device if torch sees it.

    Raises:
        InputError: if torch does not see the device.
    """
    if device not in devices():
        raise InputError("The device {device!r} is not available. Choose {known}.", device=device, known=devices()[0])
    return device


def use_threads() -> int:
    """Set the thread counts of torch and numpy from the variable ``ATTENTION_LAB_THREADS`` (default 1).

    Call it once, when a program starts. One thread is the default because a server answers several visitors at the same
    time on few cores, and threads that wait for each other on a busy machine are slower than a single one. With 200
    visitors on two cores, numpy's threads alone raised a visitor's wait from 0.5 s to 1.3 s.

    Returns:
        The thread count.

    Raises:
        SettingError: if the variable is not a whole number from 1 to the number of cores.
    """
    word, cores = os.environ.get("ATTENTION_LAB_THREADS", "1").strip(), os.cpu_count() or 1
    if not (word.isdecimal() and 1 <= int(word) <= cores):
        raise SettingError(
            "ATTENTION_LAB_THREADS is {value!r}. Set a whole number from 1 to {cores}.", value=word[:40], cores=cores
        )
    # The library itself needs only torch and numpy. Programs that set the number of threads also need threadpoolctl.
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(int(word))
    threadpool_limits(int(word), "blas")  # the threads of numpy; this limit lasts until it is set again
    return int(word)
