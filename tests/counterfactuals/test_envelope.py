"""Lines over 1 / T and their upper envelope, by hand and against all tokens."""

import pytest
import torch

from sampling_lab import SamplingParams
from sampling_lab.counterfactuals import noise_of_step
from sampling_lab.counterfactuals.envelope import Line, contenders, upper_envelope
from tests.counterfactuals.cases import INF, random_logits


def test_a_crossing_by_hand():
    # 2 / T + log 1 = 1 / T + log e at T = 1; the third is below both everywhere.
    lines = [Line(0, 2.0, 0.0), Line(1, 1.0, 1.0), Line(2, 0.0, 1.1)]
    assert upper_envelope(lines, 0.5, 5.0) == [(0.5, 1.0, 0), (1.0, 5.0, 1)]
    # ... until beyond T = 10, where the smallest q wins.
    assert upper_envelope(lines, 2.0, 20.0) == [
        (2.0, pytest.approx(10.0), 1),
        (pytest.approx(10.0), 20.0, 2),
    ]


def test_a_line_overtaken_before_it_leads_is_popped():
    lines = [Line(0, 4.0, 0.0), Line(1, 3.0, 0.1), Line(2, 2.0, 4.0)]
    assert [s.token_id for s in upper_envelope(lines, 0.01, 100.0)] == [0, 2]


def test_of_equal_lines_the_lowest_id_leads():
    lines = [Line(1, 2.0, 1.0), Line(4, 2.0, 1.0), Line(5, 2.0, 3.0)]
    assert [s.token_id for s in upper_envelope(lines[:2], 0.1, 1.0)] == [1]
    assert [s.token_id for s in upper_envelope(lines, 0.1, 1.0)] == [5]


@pytest.mark.parametrize("kind", range(4))
def test_only_tokens_that_cannot_win_are_left_out(kind):
    logits = random_logits(5, 3000, kind).float() / 10  # so flat that any can win
    beta = torch.logspace(-1.3, 1.3, 100, dtype=torch.float64)[:, None]
    for seed in range(12):
        q = noise_of_step(logits, SamplingParams(seed=seed)).exponentials
        lines = contenders(logits, logits > -INF, q)
        assert len(lines) < 200
        scores = beta * logits.double() - q.double().log()  # (100, V)
        assert set(scores.argmax(-1).tolist()) <= {line.token_id for line in lines}
