"""How many threads torch computes with: one setting, set once when a program starts."""

import os

import torch

from attention_core.errors import SettingError


def use_threads() -> int:
    """Set torch's thread count from the environment variable ``ATTENTION_LAB_THREADS`` (1 where it is not set).

    One thread is the default because a server answers several people at once on few cores: threads that wait for one
    another on a busy machine are slower than one that does not wait.

    Returns:
        The thread count.

    Raises:
        SettingError: if the variable is no whole number from 1 to the number of cores.
    """
    word, cores = os.environ.get("ATTENTION_LAB_THREADS", "1").strip(), os.cpu_count() or 1
    if not (word.isdecimal() and 1 <= int(word) <= cores):
        raise SettingError(
            "ATTENTION_LAB_THREADS is {value!r}; give a whole number from 1 to {cores}.", value=word[:40], cores=cores
        )
    torch.set_num_threads(int(word))
    return int(word)
