"""Speed, as ratios within one run: `make bench`.

Each pair is timed alternately (ours, theirs, ours, …) and the medians are compared, so
that the ratio is fair even if the machine's speed drifts.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from sampling_lab import SamplingParams, generate, load
from sampling_lab.explorer.pictures.tabs import TABS
from sampling_lab.models.base import Model
from tests import bench_browser, bench_chain, bench_explorer
from tests.fakes import letters
from tests.helpers import ROOT
from tests.models.xslm_comparison import first_difference
from tests.models.xslm_reference import Reference

SMOLLM2 = ROOT / "checkpoints" / "smollm2-135m-instruct"
XSLM = ROOT / "checkpoints" / "xslm" / "model.json"
PARAMS = SamplingParams(temperature=0.8, top_k=50, top_p=0.9, seed=7)
PROMPT = "The sky is blue because"


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def pair(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 5
) -> tuple[float, float]:
    """Return the median seconds of two actions, run alternately after one warm-up."""
    ours(), theirs()
    times = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    first, second = zip(*times, strict=True)
    return statistics.median(first), statistics.median(second)


def show(name: str, figure: str, goal: str = "") -> None:
    """Print one line of the table."""
    print(f"{name:<58} {figure:>24}   {goal}", flush=True)


def bench_generation(model: Model) -> None:
    """Time SmolLM2 against `transformers.generate`, and a second, unchanged run."""
    prompt_ids = model.prompt_ids(PROMPT)
    network = model.network
    tensor = torch.tensor([prompt_ids])
    count = 48

    def ours() -> None:
        model.reset()
        generate(model, prompt_ids, PARAMS, max_new_tokens=count, stop_token_ids=())

    def theirs() -> None:
        torch.manual_seed(PARAMS.seed)
        network.generate(
            tensor,
            attention_mask=torch.ones_like(tensor),
            do_sample=True,
            temperature=PARAMS.temperature,
            top_k=PARAMS.top_k,
            top_p=PARAMS.top_p,
            max_new_tokens=count,
            min_new_tokens=count,
            pad_token_id=0,
        )

    with torch.random.fork_rng():
        mine, library = pair(ours, theirs)
    show(
        "SmolLM2, every step recorded, tok/s vs transformers.generate",
        f"{library / mine:.2f}x  ({count / mine:.1f} tok/s)",
        ">= 1.1x",
    )
    ours()
    passes = model.forward_passes
    again = statistics.median(
        seconds(
            lambda: generate(
                model, prompt_ids, PARAMS, max_new_tokens=count, stop_token_ids=()
            )
        )
        for _ in range(5)
    )
    show(
        f"  the same again: {model.forward_passes - passes} forward passes",
        f"{again / count * 1e3:.2f} ms/token",
        "no pass, <= 2 ms",
    )


def bench_long_texts() -> None:
    """Time long texts of an instant model: twice the tokens, twice the time."""
    model = letters()
    counts = (1000, 2000, 4000, 8000)

    def run(count: int) -> Callable[[], object]:
        return lambda: (
            model.reset(),
            generate(model, "a", SamplingParams(seed=1), max_new_tokens=count),
        )

    times = [seconds(run(count)) for count in counts]
    figure = ", ".join(f"{taken:.2f}" for taken in times)
    show(
        f"an instant model, {counts} tokens", f"{figure} s", "each about twice as long"
    )


def bench_gguf() -> None:
    """Time the first load of the GGUF, which converts it, against the second."""
    source = next(SMOLLM2.glob("*.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / source.name
        shutil.copyfile(source, path)
        first, second = seconds(lambda: load(path)), seconds(lambda: load(path))
    show("GGUF: first load (converts), second load", f"{first:.1f} s, {second:.2f} s")
    show("  first / second", f"{first / second:.0f}x", "second < 2 s")


def bench_xslm() -> None:
    """Time XSLM against the pure-Python loop of the tests."""
    model, reference = load(XSLM), Reference(XSLM)
    ids = model.prompt_ids("Q: is the sun warm?\nA: ")
    params = SamplingParams(temperature=0.8, top_k=5, seed=3)
    how = {"temperature": 0.8, "top_k": 5, "seed": 3}

    def ours() -> None:
        model.reset()
        generate(model, ids, params, stop_token_ids=(), max_new_tokens=24)

    def one_pass() -> None:
        model.reset()
        model.logits(ids)

    mine, python = pair(
        ours, lambda: reference.generate(ids, stop=False, max_new_tokens=24, **how)
    )
    show("XSLM vs the pure-Python loop, every step recorded", f"{python / mine:.0f}x")
    mine, python = pair(one_pass, lambda: reference.logits(ids), rounds=25)
    show("  its forward pass alone", f"{python / mine:.0f}x", ">= 100x")
    different = first_difference(model, XSLM, 10_000)
    show("  10,000 generations that differ from plain Python", str(different), "None")


def bench_steps() -> None:
    """Time what a step adds to a forward pass, next to the library's processors."""
    for name, ours, theirs, goal in bench_chain.run():
        figure = f"{ours * 1e3:.2f} ms, library {theirs * 1e3:.2f} ms"
        show(name, figure, f"<= {goal * 1e3:g} ms")


def bench_panel() -> None:
    """Time the explorer in a kernel: its first picture, a slider, each of its tabs."""
    for line in bench_explorer.run(SMOLLM2, PROMPT, TABS):
        show(*line)
    taken = bench_browser.slider_to_page(SMOLLM2, PROMPT)
    figure = "no Chromium here" if taken is None else f"{taken * 1e3:.0f} ms"
    show("slider to page, end to end in Chromium", figure, "median <= 80 ms")


def main() -> None:
    """Print every figure that this machine can give."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    bench_steps()
    bench_xslm()
    bench_long_texts()
    if not SMOLLM2.exists():
        sys.exit("SmolLM2 is not here: run `sampling-lab fetch smollm2` for the rest")
    model = load(SMOLLM2)
    bench_generation(model)
    bench_panel()
    bench_gguf()


if __name__ == "__main__":
    main()
