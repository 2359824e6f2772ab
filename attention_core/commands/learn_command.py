"""The command ``learn``, which trains tiny models."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from attention_core.commands.command_line import Commands, print_rows
from attention_core.experiments import learning
from attention_core.learning.model import POSITIONS
from attention_core.learning.tasks import TASKS
from attention_core.runtime.devices import use_threads


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser("learn", help="train tiny models, one per variant, on a small task")
    parser.add_argument("--task", default="recall", metavar="KEY", help=f"task (default: recall): {', '.join(TASKS)}")
    parser.add_argument(
        "--variants", nargs="+", required=True, metavar="WORD", help="variants, such as softmax deltanet"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="first random seed of the models and their data; the other seeds are the next numbers",
    )
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; each trains one model per variant")
    parser.add_argument("--steps", type=int, default=400, help="number of training steps")
    parser.add_argument(
        "--every", type=int, default=learning.MEASURE_INTERVAL, help="number of training steps between two measurements"
    )
    parser.add_argument("--length", type=int, help="number of tokens in a training sequence")
    parser.add_argument("--items", type=int, help="number of pairs or symbols that the model must remember")
    parser.add_argument(
        "--test-lengths",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="sequence lengths on which the trained models are tested, in tokens",
    )
    parser.add_argument(
        "--test-items",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="how much the trained models must remember in the tests: numbers of key–value pairs or of symbols, "
        "depending on the task",
    )
    parser.add_argument("--rate", type=float, help="learning rate of all variants (default: the tuned rate of each)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument(
        "--convolution",
        type=int,
        default=3,
        help="number of tokens that the short convolution spans; 0 means no convolution",
    )
    parser.add_argument("--positions", choices=POSITIONS, help="position encoding (default: that of the task)")
    parser.add_argument(
        "--fixed", action="store_true", help="do not train the parts of variants that can be trained, such as gates"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> None:
    use_threads()
    plan = learning.plan(
        args.variants,
        task=args.task,
        length=args.length,
        items=args.items,
        steps=args.steps,
        rates=None if args.rate is None else [args.rate] * len(args.variants),
        seeds=range(args.seed, args.seed + args.seeds),
        lengths=args.test_lengths,
        more_items=args.test_items,
        every=args.every,
        layers=args.layers,
        heads=args.heads,
        convolution=args.convolution,
        fixed=args.fixed,
        **({} if args.positions is None else {"positions": args.positions}),
    )

    def train() -> Iterator[dict[str, Any]]:
        results: list[learning.LearnRow] = []
        while tasks := learning.next_tasks(plan, results):
            rows = learning.run(tasks[0])
            results += rows
            yield from (asdict(each.row) for each in rows)

    form = f"variant:<{max(8, *map(len, args.variants))} seed:>4 step:>5 length:>6 items:>5 loss:>7.3f accuracy:>8.3f"
    print_rows(train(), f"{form} seconds:>7.2f", as_json=args.json)
