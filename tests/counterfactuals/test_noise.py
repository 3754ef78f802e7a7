"""The random numbers of one step: wheel slices, race rows, other settings."""

import pytest
import torch

from sampling_lab import SamplingParams, generate
from sampling_lab.counterfactuals import noise_of_step, race_rows, wheel_slices
from sampling_lab.errors import ParameterError
from sampling_lab.sampling.draws import Race
from tests.counterfactuals.cases import INF, TOY, random_logits
from tests.fakes import TableModel


def test_slices_of_the_wheel_hold_the_number():
    logits = random_logits(1, 30)
    params = SamplingParams(seed=3, dialect="xslm")
    drawn = params.draw()(logits)
    slices = wheel_slices(logits, 30)
    (hit,) = (s for s in slices if s.low <= drawn.uniform < s.high)
    assert (hit.token_id, (hit.low, hit.high)) == (drawn.token_id, drawn.segment)
    assert (slices[0].low, slices[-1].high) == (0.0, 1.0)
    short = wheel_slices(logits, 4)
    assert short[:4] == slices[:4] and short[4] == (None, slices[3].high, 1.0)


def test_rows_of_the_race_are_its_scores():
    logits = random_logits(2, 50, kind=3)
    params = SamplingParams(seed=6)
    drawn = params.draw()(logits)
    rows = race_rows(logits, noise_of_step(logits, params), n=60)
    assert rows[0].token_id == drawn.token_id
    assert rows[0].score == drawn.score and rows[0].exponential == drawn.exponential
    assert [r.score for r in rows] == sorted((r.score for r in rows), reverse=True)
    assert {r.token_id for r in rows} == {i for i in range(50) if logits[i] > -INF}
    assert race_rows(logits, noise_of_step(logits, params), n=3) == rows[:3]


def test_a_wheel_runs_no_race():
    noise = noise_of_step(TOY, SamplingParams(dialect="xslm"))
    with pytest.raises(ParameterError, match="needs the noise of a race, got choices"):
        race_rows(TOY, noise)


def test_the_numbers_of_a_step_does_not_depend_on_settings():
    warm = SamplingParams(seed=1, temperature=2.0, top_k=2)
    cold = SamplingParams(seed=1, temperature=0.5, top_p=0.5)
    a, b = noise_of_step(TOY, warm, step=3), noise_of_step(TOY, cold, step=3)
    assert torch.equal(a.exponentials, b.exponentials)
    assert not torch.equal(
        a.exponentials, noise_of_step(TOY, warm, step=2).exponentials
    )


def test_float64_logits_race_on_float64_numbers():
    logits = random_logits(3).double()
    params = SamplingParams(seed=2, temperature=1.5)
    noise = noise_of_step(logits, params)
    assert noise.exponentials.dtype == torch.float64
    final = params.chain()(logits)
    assert noise.choose(final) == Race(2)(final).token_id


def test_a_greedy_step_has_no_numbers_to_take():
    run = generate(TableModel(torch.eye(3)), [0], SamplingParams(temperature=0))
    with pytest.raises(ParameterError, match=r"greedy step used no random number"):
        noise_of_step(TOY, SamplingParams(), drawn=run.steps[0].drawn)
