"""Samplers that one engine has or another: tables worked out by hand.

Those of transformers and llama.cpp are compared with the engines themselves in
tests/models/test_conformance.py and test_engines.py.
"""

import math

import pytest
import torch

from sampling_lab import SamplingParams, fork, generate, load, replay
from sampling_lab.sampling.cutoffs import EpsilonCutoff, EtaCutoff, PLess, TopA, TopH
from sampling_lab.sampling.sequences import DRY, LengthDecay, MinNewTokens, SequenceBias
from sampling_lab.sampling.temperature import DynamicTemperature, QuadraticSmoothing
from sampling_lab.sampling.truncation import AtLeast, Mirostat, TopK, TopP
from tests.helpers import ROOT
from tests.sampling.test_stage import INF, kept, logs

XSLM = ROOT / "checkpoints/xslm/model.json"
PROBS = (0.5, 0.25, 0.15, 0.07, 0.03)


@pytest.mark.parametrize(
    ("stage", "left"),
    [
        (TopA(0.3), [0, 1, 2]),  # 0.3 * 0.25 = 0.075
        (TopA(0.0), [0, 1, 2, 3, 4]),
        (TopA(0.9), [0, 1]),
        (EpsilonCutoff(0.1), [0, 1, 2]),
        (EpsilonCutoff(0.9), [0]),  # the most likely one stays
        # Its entropy is 1.268 nats: sqrt(0.09) * exp(-1.268) = 0.0844.
        (EtaCutoff(0.09), [0, 1, 2]),
        (EtaCutoff(0.9), [0]),  # 0.267
        (PLess(), [0]),  # 0.3408 is the chance that two draws agree
        (TopH(0.5), [0]),  # 0.347, then 0.693 of 1.268 nats
        (TopH(0.6), [0, 1]),
        (TopH(1.0), [0, 1, 2, 3, 4]),
        (Mirostat(2, mu=2.5), [0, 1]),  # surprises 1, 2, 2.74, 3.84 and 5.06 bits
        (Mirostat(2, mu=0.5), [0]),
        (Mirostat(2, mu=9.0), [0, 1, 2, 3, 4]),
        (AtLeast(TopP(0.4), 3), [0, 1, 2]),
        (AtLeast(TopK(4), 3), [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_cutoffs(stage, left):
    assert kept(stage, logs(*PROBS)) == left
    criterion = stage.criterion(logs(*PROBS))
    relations = {"<": torch.lt, ">": torch.gt, ">=": torch.ge}
    compare = relations[criterion.relation]
    removed = compare(criterion.values, criterion.threshold).tolist()
    assert not any(removed[i] for i in left) or len(left) in (1, 3)
    assert all(removed[i] for i in range(5) if i not in left)


@pytest.mark.parametrize("stage", [PLess(), TopH(0.01), Mirostat(1, mu=0.1), TopA(1)])
@pytest.mark.parametrize("probs", [(1.0,), (0.5, 0.5), (0.0, 1.0, 0.0)])
def test_a_token_always_stays(stage, probs):
    assert kept(stage, logs(*probs))


def test_a_dynamic_temperature_follows_the_entropy():
    stage = DynamicTemperature(1.0, 0.5)
    flat, certain = torch.zeros(4), torch.tensor([0.0, -INF, -INF])
    assert stage.acting(flat).item() == pytest.approx(1.5)
    assert stage.acting(torch.tensor([50.0, 0.0])).item() == pytest.approx(0.5)
    assert stage.acting(certain).item() == 1.0  # one token: there is nothing to scale
    half = logs(0.5, 0.5, 0.0, 0.0)  # of two tokens, flat
    assert stage(half).tolist() == (half / 1.5).tolist()
    two = logs(0.89, 0.11)
    assert stage.evidence(two)["T"] == pytest.approx(1.0, abs=1e-3)
    squared = DynamicTemperature(1.0, 0.5, exponent=2.0)
    assert squared.evidence(two)["T"] == pytest.approx(0.75, abs=1e-3)
    assert kept(DynamicTemperature(0.0, 0.0), torch.tensor([1.0, 2.0, 2.0])) == [1]


def test_smoothing_brings_near_tokens_nearer_and_far_ones_farther():
    logits = torch.tensor([3.0, 2.5, 0.0, -INF])
    assert QuadraticSmoothing(1.0)(logits).tolist() == [3.0, 2.75, -6.0, -INF]
    assert QuadraticSmoothing(0.5)(logits).tolist() == [3.0, 2.875, -1.5, -INF]
    cubic = QuadraticSmoothing(1.0, curve=3.0)(logits)
    assert cubic.tolist() == [3.0, 2.875, -24.0, -INF]


@pytest.mark.parametrize(
    ("token_ids", "options", "found"),
    [
        ((1, 2, 3, 1, 2), {}, {3: 2}),
        ((1, 2, 3, 1, 2, 4, 1, 2), {}, {3: 2, 4: 2}),
        ((5, 1, 2, 3, 5, 1, 2, 4, 9, 5, 1, 2), {}, {3: 3, 4: 3}),
        ((7, 7, 7, 7), {}, {7: 3}),
        ((1, 2, 3, 1, 2), {"allowed_length": 3}, {}),
        ((1, 2, 3, 2), {"allowed_length": 1}, {3: 1}),
        ((1, 9, 2, 3, 1, 9, 2), {"breakers": (9,)}, {}),
        ((1, 9, 2, 3, 1, 9, 2), {"breakers": (9,), "allowed_length": 1}, {3: 1}),
        ((), {}, {}),
        ((4,), {}, {}),
    ],
)
def test_dry_finds_what_would_go_on_with_a_passage(token_ids, options, found):
    stage = DRY(0.8, token_ids=token_ids, **options)
    assert stage.repeating() == found
    lowered = stage(torch.zeros(10))
    for token_id in range(10):
        length = found.get(token_id, 0) - stage.allowed_length
        penalty = 0.8 * 1.75**length if token_id in found else 0
        assert lowered[token_id].item() == pytest.approx(-penalty)


def test_a_very_long_repetition_stays_finite():
    stage = DRY(1.0, base=4.0, token_ids=(3,) * 2000)
    assert torch.isfinite(stage(torch.zeros(5))).all()
    assert DRY(1.0, base=1.0, token_ids=(3,) * 50)(torch.zeros(5))[3] == -1.0


@pytest.mark.parametrize(
    ("token_ids", "expected"),
    [((), [0.0, 0.0, 1.0]), ((0,), [0.0, -2.0, 1.0]), ((0, 0), [0.5, -2.0, 1.0])],
)
def test_a_bias_of_a_sequence_counts_once_it_has_begun(token_ids, expected):
    biases = {(2,): 1.0, (0, 1): -2.0, (0, 0, 0): 0.5}
    assert SequenceBias(biases, token_ids)(torch.zeros(3)).tolist() == expected


def test_length_rules():
    logits = torch.tensor([2.0, -1.0, 0.5])
    soon = MinNewTokens(3, made=2, stop_token_ids=(1,))
    assert soon(logits).tolist() == [2.0, -INF, 0.5]
    assert MinNewTokens(3, 3, (1,))(logits).tolist() == logits.tolist()
    decay = LengthDecay(2.0, start=1, made=3, stop_token_ids=(0, 1))
    assert decay(logits).tolist() == [8.0, 2.0, 0.5]
    assert LengthDecay(2.0, 3, 3, (0, 1))(logits).tolist() == logits.tolist()
    # An impossible stop token stays so.
    assert LengthDecay(2.0, 0, 9, (0,))(torch.tensor([-INF, 1.0]))[0] == -INF


@pytest.fixture(scope="module")
def model():
    return load(XSLM)


def test_a_text_has_at_least_so_many_tokens(model):
    greedy = SamplingParams(temperature=0)
    short = generate(model, "Q: hi\nA: ", greedy)
    longer = generate(model, "Q: hi\nA: ", greedy.replace(min_new_tokens=20))
    assert len(short.token_ids) < 20 <= len(longer.token_ids)
    assert longer.token_ids[: len(short.token_ids)] == short.token_ids
    sooner = generate(model, "Q: hi\nA: ", greedy.replace(length_decay=50.0))
    assert len(sooner.token_ids) < len(short.token_ids)


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_moves_its_limit_against_the_surprise(model, version):
    params = SamplingParams(
        mirostat=version, mirostat_tau=1.5, mirostat_eta=0.3, temperature=8.0, seed=5
    )
    run = generate(model, "Q: hi\nA: ", params, stop_token_ids=())
    mu = 3.0
    for step in run.steps:
        found = step.ledger().stages[-1].evidence
        assert found == {"mu": pytest.approx(mu), "target": 1.5}
        if version == 2 and step.kept_count > 1:
            before = step.ledger().stages[-1].before.softmax(-1)
            assert -math.log2(before[step.token_id]) <= mu
        mu -= 0.3 * (-math.log2(step.final_prob) - 1.5)
    assert len({step.kept_count for step in run.steps}) > 2
    assert replay(run, model).same
    again = fork(model, run, 7, run.token_ids[7]).to_the_end()
    assert again.token_ids == run.token_ids
    mean = sum(step.final_surprisal for step in run.steps) / len(run.steps)
    assert mean == pytest.approx(1.5, abs=0.8)


def test_llama_cpp_applies_mirostat_alone():
    params = SamplingParams(
        temperature=0.8, top_k=5, min_p=0.1, repetition_penalty=1.2, mirostat=2
    )
    names = params.replace(dialect="llama.cpp").stage_names
    assert names == ("temperature", "mirostat")
    assert params.stage_names[-1] == "mirostat"
    assert len(params.stage_names) == 5


def test_a_dynamic_temperature_takes_the_place_of_the_fixed_one():
    params = SamplingParams(temperature=0.8, dynatemp_range=0.4, top_k=3)
    assert params.stage_names == ("dynatemp_range", "top_k")
    greedy = params.replace(temperature=0)
    assert greedy.stage_names == ("temperature",)


def test_options_without_their_parameter_are_said_to_have_no_effect(model):
    params = SamplingParams(dry_base=2.0, mirostat_tau=3.0, top_k=3)
    notes = generate(model, "Q: hi\nA: ", params).notes
    assert "dry_base has no effect: DRY is off" in notes
    assert "mirostat_tau has no effect: mirostat is off" in notes
    assert params.effective(9)["dry_base"] is None


@pytest.mark.parametrize(  # the cases of llama.cpp's own tests of DRY
    ("size", "before", "options", "expected"),
    [
        (4, (0, 1), (1.0, 1.1, 2), (0.25, 0.25, 0.25, 0.25)),
        (4, (0, 1, 2, 0, 1), (1.0, 1.1, 2), (0.296923, 0.296923, 0.109232, 0.296923)),
        (5, (0, 1, 3, 4, 0, 1), (2.0, 1.1, 2), (*[0.241818] * 3, 0.032727, 0.241818)),
        (5, (0, 1, 2, 3, 4, 0, 1), (1.0, 1.1, 4), (0.2, 0.2, 0.2, 0.2, 0.2)),
    ],
)
def test_dry_lowers_what_llama_cpps_tables_say(size, before, options, expected):
    params = SamplingParams(
        dialect="llama.cpp",
        **dict(
            zip(("dry_multiplier", "dry_base", "dry_allowed_length"), options, strict=1)
        ),
    )
    found = params.chain(before).probs(torch.full((size,), 1 / size).log())
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
