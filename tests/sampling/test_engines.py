"""Each dialect keeps what its engine itself kept, on recorded rows.

`tools/record_engines.py` says how they were recorded.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from sampling_lab.sampling.chain import Chain
from sampling_lab.sampling.dialects import DIALECTS
from sampling_lab.sampling.params import SamplingParams

FOLDER = Path(__file__).parent.parent / "data" / "engines"
META = json.loads((FOLDER / "meta.json").read_text())
ENGINES = ["llama.cpp", "vllm", "mlx", "ollama<0.30"]


@functools.cache
def recording(engine):
    """Return the rows by group and what an engine made of them."""
    with np.load(FOLDER / "rows.npz") as file:
        rows = dict(file)
    with np.load(FOLDER / f"{engine.partition('<')[0]}.npz") as file:
        return rows, dict(file)


def cases(engine):
    """Yield where, a row, and the recording's kept tokens and probabilities."""
    groups, recorded = recording(engine)
    for group, rows in groups.items():
        probs = recorded.get(f"{group}/probs")
        for place, at in enumerate(META["engines"][engine]["settings"]):
            kept = np.unpackbits(recorded[f"{group}/kept"][place], axis=-1)
            for i, row in enumerate(rows):
                where = (group, i, META["settings"][at])
                their_probs = None if probs is None else probs[place, i]
                yield where, row, kept[i, : len(row)].astype(bool), their_probs


def chain(engine, group, i, settings):
    """Return the dialect's chain for a setting after the tokens before a row."""
    found = META["history"].get(group, META["history"]["other"])
    before = found[i % len(found)]
    if "logit_bias" in settings:  # JSON turned token ids into strings
        biases = {int(k): v for k, v in settings["logit_bias"].items()}
        settings = {**settings, "logit_bias": biases}
    settings = dict(settings)
    stops = settings.pop("stop_token_ids", ())
    params = SamplingParams(**settings, dialect=engine)
    return params.chain(tuple(before["ids"]), before["prompt_length"], stops)


@functools.cache
def differences(engine):
    """Return the wrong kept sets without and with ties, and each one's number.

    With ties, the same values have to be kept, whichever tokens have them. A token that
    an engine lists at probability 0, as Ollama does if its logit is minus infinity,
    is not kept.
    """
    wrong, count = {False: [], True: []}, {False: 0, True: 0}
    farthest = 0.0
    for where, row, kept, probs in cases(engine):
        stages, logits = chain(engine, *where), torch.from_numpy(row)
        adjusting = tuple(stage for stage in stages.stages if stage.adjusts)
        values = Chain(adjusting)(logits).numpy()
        final = stages(logits)
        ours, theirs = (final > -np.inf).numpy(), kept & (values > -np.inf)
        possible = values[values > -np.inf]
        ties = len(np.unique(possible)) < len(possible)
        count[ties] += 1
        if ties:
            same = np.array_equal(np.sort(values[ours]), np.sort(values[theirs]))
        else:
            same = np.array_equal(ours, theirs)
        if not same:
            wrong[ties].append((*where, ours.sum(), theirs.sum()))
        elif probs is not None:
            both = np.sort(final.softmax(-1).numpy()), np.sort(probs)
            farthest = max(farthest, abs(both[0] - both[1]).max())
    return wrong, count, farthest


@pytest.mark.parametrize("engine", ENGINES)
def test_without_ties_every_kept_set_is_the_engines(engine):
    wrong, count, _ = differences(engine)
    assert wrong[False] == []
    assert count[False] >= 1300


@pytest.mark.parametrize("engine", ENGINES)
def test_with_ties_the_same_values_are_kept(engine):
    wrong, count, _ = differences(engine)
    assert wrong[True] == []
    assert count[True] > 1200


@pytest.mark.parametrize("engine", ENGINES)
def test_final_probabilities_are_the_engines(engine):
    assert 0 < differences(engine)[2] < 2e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dialect_tells_how_much_of_its_engine_it_is_checked_with(engine):
    rows, recorded = recording(engine)
    facts = META["engines"][engine]
    for group in rows:
        shape = len(facts["settings"]), len(rows[group])
        assert recorded[f"{group}/kept"].shape[:2] == shape
    assert DIALECTS[engine].checked == (
        f"{facts['version']}: {sum(map(len, rows.values()))} rows, "
        f"{len(facts['settings'])} settings"
    )
