"""The command ``image``, which denoises an image."""

import argparse
from pathlib import Path

from attention_core.commands.command_line import Commands, add_variants, print_rows, read_bytes, wrap
from attention_core.experiments import denoising
from attention_core.inputs import ImageSource, image
from attention_core.runtime.devices import use_threads


def add_to(commands: Commands) -> None:
    """Add the command and its options to the command line."""
    parser = commands.add_parser("image", help="denoise an image with attention over its patches")
    photo = parser.add_mutually_exclusive_group()
    photo.add_argument("--file", type=Path, metavar="PATH", help="PNG or JPEG image")
    photo.add_argument("--photo", choices=image.PHOTOS, default=image.PHOTOS[0], help="one of the included photographs")
    add_variants(parser)
    parser.add_argument("--size", type=int, default=ImageSource.size, help="height and width of the pixel grid")
    parser.add_argument(
        "--patch",
        type=int,
        choices=image.PATCHES,
        default=ImageSource.patch,
        help="height and width of a patch, in pixels",
    )
    parser.add_argument(
        "--noise",
        type=float,
        default=ImageSource.noise,
        help="standard deviation of the noise, where black is 0 and white is 1",
    )
    parser.add_argument("--seed", type=int, default=ImageSource.seed, help="seed of the noise")
    parser.add_argument(
        "--strength",
        type=float,
        default=ImageSource.strength,
        help="filter strength h; the smaller it is, the more of the weight goes to the most similar patches",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> None:
    use_threads()
    settings = {name: getattr(args, name) for name in ("size", "patch", "noise", "seed", "strength")}
    if args.file is None:
        source = ImageSource(args.photo, **settings)
    else:
        source = ImageSource.of(args.file.name, read_bytes(args.file), **settings)
    tasks = denoising.tasks(source, args.variants)
    for notice in () if args.json else source.whole().notices:
        print(wrap(str(notice)))
    names = ("variant", "psnr", "ssim", "psnr_noisy", "psnr_mean", "seconds")
    rows = ({name: getattr(row, name) for name in names} for task in tasks for row in denoising.run(task))
    form = f"variant:<{max(8, *(len(task.word) for task in tasks))} psnr:>7.2f ssim:>6.3f psnr_noisy:>10.2f"
    print_rows(rows, f"{form} psnr_mean:>9.2f seconds:>7.3f", as_json=args.json)
