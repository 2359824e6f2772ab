"""The command ``claims``, which checks claims of articles on an input, or on many inputs."""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from attention_core import claims
from attention_core.claims import survey
from attention_core.commands.command_line import Commands, check_folder, read_bytes, read_text, wrap
from attention_core.errors import InputError, LabError
from attention_core.inputs import KINDS, Source, SyntheticSource, SyntheticSpec, TextSource, UploadSource
from attention_core.runtime.devices import use_threads


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser(
        "claims", help="use a text or a synthetic input to check claims that articles make about attention"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--text", metavar="WORDS", help="text that the model reads")
    source.add_argument("--file", type=Path, metavar="PATH", help="file with a text, or .npz file with q, k and v")
    kinds = [kind.key for kind in KINDS]
    source.add_argument(
        "--synthetic",
        default=kinds[0],
        metavar="KIND",
        help=f"kind of synthetic input (default: {kinds[0]}): {', '.join(kinds)}",
    )
    source.add_argument(
        "--survey",
        action="store_true",
        help="check the claims on many fixed inputs and count the verdicts (takes minutes)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="Markdown file in which the counts of --survey are saved"
    )
    parser.add_argument(
        "--model", default="minilm", help="minilm, smollm2, or owner/name of a model on the Hugging Face hub"
    )
    parser.add_argument("--layer", type=int, default=0, help="layer of the model; the first is 0")
    parser.add_argument("--head", type=int, metavar="N", help="head of the layer; the first is 0 (default: all heads)")
    parser.add_argument("--tokens", type=int, metavar="N", help="maximum number of tokens to use from the input")
    parser.add_argument(
        "--only", nargs="+", metavar="KEY", help="claims to check, such as memory_quadruples (default: all)"
    )
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> None:
    use_threads()
    if args.survey:
        _survey(args)
        return
    if args.out is not None:
        raise InputError("--out names the file for the counts of a survey, so it needs --survey.")
    if args.tokens is not None and not 1 <= args.tokens <= claims.LONGEST:
        raise InputError("--tokens is {n}. Choose a number from 1 to {most}.", n=args.tokens, most=claims.LONGEST)
    source = _source(args)
    # ``longest`` is the maximum length for claims about growth with the length. A generated input can have any length,
    # so these claims may use more than --tokens, as on the Claims page.
    longest = claims.LONGEST if source.is_generated else args.tokens or claims.LONGEST
    selected = claims.chosen(args.only)
    tasks = claims.tasks(source, head=args.head, keys=args.only, longest=longest)
    n_tokens, counted = claims.length(source, longest=longest), Counter[claims.Verdict]()
    for number, (claim, task) in enumerate(zip(selected, tasks, strict=True), start=1):
        print(f"{number}/{len(selected)} {claim.key}", file=sys.stderr)
        try:
            [outcome] = claims.run(task)
        except LabError as error:
            _print_claim(claim, "", str(error))
            continue
        counted[outcome.verdict] += 1
        _print_claim(claim, outcome.verdict, " ".join(outcome.sentences).format(**outcome.formatted_numbers))
    counts = ", ".join(f"{verdict}: {counted[verdict]}" for verdict in claims.Verdict)
    if unchecked := len(selected) - counted.total():
        counts += f", not checked: {unchecked}"
    print(wrap(f"On {n_tokens} tokens of this input, of {len(selected)} claims: {counts}"))


def _survey(args: argparse.Namespace) -> None:
    if (args.model, args.layer, args.head, args.tokens) != ("minilm", 0, None, None):
        raise InputError("A survey uses its own inputs. Remove --model, --layer, --head and --tokens.")
    if args.out is not None:
        check_folder(args.out)
    found = survey.run(
        survey.INPUTS,
        keys=args.only,
        on_input=lambda number, each: print(f"{number}/{len(survey.INPUTS)} {each.name}", file=sys.stderr, flush=True),
    )
    if args.out is not None:
        args.out.write_text(survey.table(found), "utf-8")
    for claim in claims.chosen(args.only):
        verdicts = found.verdicts[claim.key]
        counts = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in claims.Verdict)
        print(f"{claim.number:>2}  {counts}  ({claim.key})")


def _source(args: argparse.Namespace) -> Source:
    if args.text is not None:
        return TextSource(args.text, args.model, args.layer)
    if args.file is None:
        spec = SyntheticSpec(kind=args.synthetic)
        return SyntheticSource(spec if args.tokens is None else replace(spec, n=args.tokens))
    if args.file.suffix == ".npz":
        return UploadSource.of(args.file.name, read_bytes(args.file))
    return TextSource(read_text(args.file), args.model, args.layer)


def _print_claim(claim: claims.Claim, verdict: str, measured: str) -> None:
    """Print the number, the verdict, the statement and the finding of one claim."""
    print(f"{claim.number:>2}  {verdict or 'not checked'}  ({claim.key})")
    for words in (claim.statement, measured):
        print(wrap(words, "    "))
    print(flush=True)
