"""The command ``swap``, which replaces the attention of a language model."""

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

from attention_core.commands.command_line import Commands, add_variants, print_rows, read_text
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.model_patching import from_word, layer_range
from attention_core.runtime.devices import use_threads


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser(
        "swap", help="measure how well a language model predicts a text if a variant replaces its softmax attention"
    )
    parser.add_argument(
        "--model", default=swap.MODEL, help="a decoder: smollm2, or owner/name of a model on the Hugging Face hub"
    )
    add_variants(parser)
    parser.add_argument(
        "--layers",
        default="all",
        help="layers in which attention is replaced: all, one layer such as 7, or a range such as 10-20",
    )
    read = parser.add_mutually_exclusive_group(required=True)
    read.add_argument("--file", type=Path, metavar="PATH", help="file with the text")
    read.add_argument("--text", metavar="WORDS", help="the text itself")
    parser.add_argument("--tokens", type=int, metavar="N", help="maximum number of tokens to use from the text")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> None:
    use_threads()
    text = args.text if args.file is None else read_text(args.file)
    layers = layer_range(args.layers, models.layer_count(args.model))
    for word in args.variants:
        from_word(word)  # raises an error for a misspelt variant early, before the model reads the text

    def measure(word: str) -> dict[str, Any]:
        task = swap.ReadingTask(text=text, word=word, layers=layers, tokens=args.tokens, model=args.model)
        read = swap.measure_reading(task)
        copies = [
            swap.measure_copying(swap.CopyTask(word=word, layers=layers, seed=seed, model=args.model))
            for seed in range(swap.SEEDS)
        ]
        return {
            "variant": word,
            "layers": args.layers,
            "tokens": read.tokens,
            "perplexity": read.perplexity,
            "copy_loss": mean(copy.copied for copy in copies),
            "seconds": read.seconds,
        }

    form = f"variant:<{max(32, *map(len, args.variants))} layers:<7 tokens:>6 perplexity:>12,.2f copy_loss:>9.3f"
    print_rows(map(measure, args.variants), f"{form} seconds:>7.2f", as_json=args.json)
