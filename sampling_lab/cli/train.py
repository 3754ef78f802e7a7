"""The command `sampling-lab train`: its options, its progress and its result."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import ParameterError
from ..sampling.settings_text import read_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sampling-lab train`."""
    add = parser.add_argument
    add("format", choices=["xslm"], help="the toy GPT is what can be trained here")
    add(
        "--steps",
        type=read_number,
        default=300,
        metavar="N",
        help="how many more (default: %(default)s)",
    )
    add(
        "--learning-rate",
        type=read_number,
        metavar="X",
        help="default: 1, or that of the resumed file",
    )
    add("--seed", type=read_number, metavar="N", help="of a new model's first weights")
    add("--resume", metavar="FILE", help="continue this checkpoint")
    add("--out", metavar="FILE", help="default: model-N-steps.json, N in all")


def run(args: argparse.Namespace) -> int:
    """Train with a progress bar; print the file, its steps and the losses."""
    from tqdm import tqdm

    from ..models.xslm.model import load, train
    from ..sampling.validation import whole_number

    resumed = None if args.resume is None else load(args.resume)
    before = 0 if resumed is None else resumed.checkpoint.settings.steps
    path = _target(args, before + whole_number("steps", args.steps))
    losses = []
    with tqdm(total=args.steps, unit="step", disable=None) as bar:

        def show(step: int, loss: float) -> None:
            losses.append(loss)
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()

        model = train(
            steps=args.steps,
            seed=args.seed,
            learning_rate=args.learning_rate,
            checkpoint=resumed,
            on_step=show,
        )
    model.save(path)
    steps = model.checkpoint.settings.steps
    sys.stdout.write(
        f"{path}: {steps:,} steps, loss {losses[0]:.3f} → {losses[-1]:.3f}\n"
    )
    return 0


def _target(args: argparse.Namespace, steps: int) -> Path:
    """Return the file to write; one that is not named is never written over."""
    if args.out is not None:
        return Path(args.out)
    path = Path(args.resume or "model.json").with_name(f"model-{steps}-steps.json")
    if path.exists():
        raise ParameterError(f"{path} is there already; name a file with --out")
    return path
