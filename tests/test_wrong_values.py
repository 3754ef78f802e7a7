"""Every public function with every wrong value: it works, or says so in a sentence."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import sampling_lab
from sampling_lab import Chain, Generation, Grid, Ledger, SamplingParams, Step, plots
from sampling_lab import counterfactuals as cf
from sampling_lab.errors import SamplingLabError
from tests.helpers import ROOT

XSLM = str(ROOT / "checkpoints/xslm/model.json")
MODEL = sampling_lab.load(XSLM)
PROMPT = "Q: hi\nA: "
PARAMS = SamplingParams()
ROW = torch.tensor([2.0, 1.0, 0.0, -1.0, 3.0])
TEXT = sampling_lab.generate(MODEL, PROMPT, PARAMS, max_new_tokens=4)
MIROSTAT = sampling_lab.generate(
    MODEL, PROMPT, SamplingParams(mirostat=2), max_new_tokens=3
)
LEDGER = PARAMS.chain().ledger(ROW)
NOISE = cf.noise_of_step(ROW, PARAMS)
NAMES = list("abcde")
TWO = (0.5, 1.0)
VALUES = {
    "None": None,
    "bytes": b"\xff",
    "word": "seven",
    "surrogate": "\ud800",
    "nan": math.nan,
    "inf": math.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "true": True,
    "list": [],
    "list of text": ["x"],
    "nested": [[1]],
    "dict": {"a": 1},
    "array": np.zeros((2, 3)),
    "nan tensor": torch.full((5,), math.nan),
    "2d tensor": torch.zeros(2, 5),
    "empty tensor": torch.zeros(0),
    "integer tensor": torch.arange(5),
    "object": object(),
    "complex": 1j,
    "set": {1},
    "function": len,
}
BIASES = ((1, 2.0),)
GIVEN = {  # what each argument is where a value of it is needed
    "a": 0.5,
    "allowed_length": 2,
    "base": 1.75,
    "biases": BIASES,
    "checkpoint": "x",
    "coin": 0.0,
    "comparison": sampling_lab.compare_dialects(ROW, PARAMS),
    "count": 2,
    "curve": 1.0,
    "data": TEXT.to_dict(),
    "dialects": ("vllm", "mlx"),
    "epsilon": 0.1,
    "exponent": 1.0,
    "factor": 1.5,
    "first": "vllm",
    "found": cf.temperature_map(ROW, PARAMS, step=0),
    "generation": TEXT,
    "h": 0.5,
    "high": 5.0,
    "index": 0,
    "k": 2,
    "ledger": LEDGER,
    "logits": ROW,
    "low": 0.2,
    "made": 0,
    "max_new_tokens": 2,
    "min_p": 0.1,
    "model": MODEL,
    "mu": 3.0,
    "multiplier": 0.8,
    "n": 2,
    "name": "top_k",
    "noise": NOISE,
    "p": 0.9,
    "params": PARAMS,
    "parent": TEXT,
    "path_or_name": XSLM,
    "penalty": 0.5,
    "probability": 0.5,
    "prompt": PROMPT,
    "prompt_length": 0,
    "range": 0.5,
    "second": "mlx",
    "seeds": [1, 2],
    "settings": [PARAMS],
    "stages": (),
    "steps": TEXT.steps,
    "stop": ("x",),
    "target": "cli",
    "temperature": 1.0,
    "temperatures": TWO,
    "threshold": 0.1,
    "token_id": 1,
    "token_ids": (1, 2),
    "tokens": NAMES,
    "version": 2,
}
ALSO = {  # functions whose arguments are others under the same names
    "Step.from_dict": {"data": TEXT.steps[0].to_dict()},
    "SequenceBias": {"biases": (((1, 2), 2.0),)},
    "AtLeast": {"stage": sampling_lab.TopK(2)},
    "LengthDecay": {"stop_token_ids": (1,)},
    "plot_mirostat": {"generation": MIROSTAT},
    "mirostat_table": {"generation": MIROSTAT},
    "plot_frequencies": {"check": cf.compare_frequencies(ROW, PARAMS, seeds=50)},
    "plot_seed_grid": {"grid": cf.seed_grid(ROW, PARAMS, [1, 2], TWO)},
}
METHODS = {
    "Chain.ledger": Chain(()).ledger,
    "Chain.probs": Chain(()).probs,
    "Ledger.rank": LEDGER.rank,
    "Ledger.removed_by": LEDGER.removed_by,
    "Ledger.table": LEDGER.table,
    "Ledger.top": LEDGER.top,
    "Ledger.why": LEDGER.why,
    "SamplingParams.is_on": PARAMS.is_on,
    "Generation.from_dict": Generation.from_dict,
    "Step.from_dict": Step.from_dict,
}
MADE_BY_OTHERS = {"Generation", "Step", "History"}
"""Public classes that a person reads and never makes."""


def public():
    """Return every public function and class, and some methods, by name."""
    found = {n: getattr(sampling_lab, n) for n in sampling_lab.__all__}
    for room in (plots, cf):
        names = (n for n in vars(room) if not n.startswith("_"))
        found |= {n: getattr(room, n) for n in names}
    calls = {n: f for n, f in found.items() if callable(f)}
    facts = {
        n
        for n, f in calls.items()
        if inspect.isclass(f)
        and f.__module__.startswith("sampling_lab.counterfactuals")
    }
    return {n: f for n, f in calls.items() if n not in MADE_BY_OTHERS | facts} | METHODS


PUBLIC = public()


def arguments(name):
    """Return a good value for every argument that is tried."""
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    known = {**GIVEN, **ALSO.get(name, {})}
    good = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is not parameter.empty:
            good[parameter.name] = parameter.default
        else:
            good[parameter.name] = known[parameter.name]  # KeyError: give it a value
    return good


def call(name, values):
    """Call a public function and go through what it gives."""
    given = PUBLIC[name](**values)
    if inspect.isgenerator(given) or name == "stream":
        list(given)


@pytest.fixture(autouse=True)
def no_pictures_stay():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_wrong_value_is_a_sentence_with_the_arguments_name(name):
    good = arguments(name)
    call(name, good)
    for argument in good:
        if name == "load" and argument != "path_or_name":
            continue  # an option of one format is refused by the others
        for kind, value in VALUES.items():
            try:
                call(name, {**good, argument: value})
            except SamplingLabError as error:
                message = str(error)
                assert len(message) <= 600 and "\n" not in message, (argument, kind)


def test_every_field_of_the_parameters_is_tried():
    fields = {field.name for field in dataclasses.fields(SamplingParams)}
    assert arguments("SamplingParams").keys() == fields
    assert {Ledger, Grid} <= set(PUBLIC.values())
