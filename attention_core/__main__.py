"""Command line of the library: ``python -m attention_core`` with ``list``, ``bench``, ``claims`` and other commands."""

import argparse
import os
import sys
from collections.abc import Sequence

from attention_core.commands import (
    bench_command,
    claims_command,
    image_command,
    learn_command,
    list_command,
    swap_command,
)
from attention_core.errors import LabError

COMMANDS = (list_command, bench_command, claims_command, swap_command, learn_command, image_command)
"""The modules of the commands, in the order in which ``--help`` lists them."""
PIPE = 13
"""Number of the signal SIGPIPE; ``signal.SIGPIPE`` does not exist on Windows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in ``arguments``, by default those of the process.

    Returns:
        The exit status. 0 is success. 2 is an invalid request, with one sentence on the error stream. 141, which
        shells report for SIGPIPE, means that the program that reads the output has ended.
    """
    try:
        try:
            args = _parser().parse_args(arguments)
            args.command(args)
        except LabError as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            sys.stdout.flush()  # a flush at exit would raise BrokenPipeError too late for the ``except`` below
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Python flushes both streams once more at exit, which would raise
        # this error again, so both are redirected to the null device.
        null_device = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(null_device, stream.fileno())
        return 128 + PIPE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m attention_core", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for each in COMMANDS:
        each.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
