"""Draws: known sequences, the libraries they mirror, frequencies, clean hands."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch

from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.draws import (
    DRAWS,
    Choices,
    Greedy,
    Keyed,
    Race,
    inverse_cdf,
    race_result,
    race_scores,
)

ABC = torch.tensor([5.0, 3.0, 2.0], dtype=torch.float64).log()
INF = float("inf")
SAMPLERS = list(DRAWS.values())


def letters(draw, logits=ABC, count=12):
    return "".join("abc"[draw(logits).token_id] for _ in range(count))


# Choices


def test_the_known_sequences():
    assert letters(Choices(7)) == "aababaabaaaa"
    assert letters(Choices(7)) == "aababaabaaaa"
    assert letters(Choices(8)) == "acabaacabaaa"


@pytest.mark.parametrize("seed", [0, 1, 7, 2**64 - 1])
def test_choices_are_random_choices_over_candidates_in_rank_order(seed):
    generator = torch.Generator().manual_seed(seed % 1000)
    draw, by_hand = Choices(seed), random.Random(seed)
    for step in range(300):
        logits = torch.randn(60, generator=generator, dtype=torch.float64) * 3
        logits = logits.round() if step % 3 == 0 else logits
        logits[torch.rand(60, generator=generator) < 0.4] = -INF
        logits[0] = 1.0
        scores = logits.tolist()
        ids = [i for i in range(60) if scores[i] > -INF]
        ids.sort(key=lambda i: -scores[i])
        weights = [math.exp(scores[i] - scores[ids[0]]) for i in ids]
        assert draw(logits).token_id == by_hand.choices(ids, weights)[0]


@pytest.mark.parametrize("method", [Choices, Keyed])
def test_the_number_falls_on_the_chosen_segment(method):
    draw = method(3)
    ends = [0.0, 0.5, 0.8, 1.0]
    for _ in range(200):
        drawn = draw(ABC)
        low, high = drawn.segment
        assert low <= drawn.uniform < high
        assert (low, high) == pytest.approx(
            (ends[drawn.token_id], ends[drawn.token_id + 1])
        )


@pytest.mark.parametrize("method", [Choices, Keyed])
def test_segments_are_in_rank_order_and_equal_ones_by_id(method):
    logits = torch.tensor([0.0, 1.0, 1.0, -INF, 0.0])
    places = {}
    for seed in range(200):
        drawn = method(seed)(logits)
        places[drawn.token_id] = drawn.segment
    assert sorted(places, key=places.get) == [1, 2, 0, 4]
    ordered = sorted(places.values())
    assert ordered[0][0] == 0.0
    assert ordered[-1][1] == 1.0
    assert all(a[1] == b[0] for a, b in pairwise(ordered))


# Race


@pytest.mark.parametrize("size", [2, 3, 17, 300, 5000])
def test_a_race_is_multinomial_with_one_sample(size):
    count = 600 if size < 1000 else 60
    for seed in range(count):
        generator = torch.Generator().manual_seed(seed + 10**6)
        logits = torch.randn(size, generator=generator) * 4
        if seed % 2:
            logits[torch.rand(size, generator=generator) < 0.7] = -INF
            logits[-1] = 0.0
        probs = logits.softmax(-1)
        by_torch = torch.Generator().manual_seed(seed)
        draw = Race(seed)
        for _ in range(2):
            expected = int(torch.multinomial(probs, 1, generator=by_torch))
            assert draw(logits).token_id == expected


def test_a_race_is_multinomial_at_a_real_vocabulary():
    logits = torch.randn(49_152, generator=torch.Generator().manual_seed(1)) * 5
    by_torch, draw = torch.Generator().manual_seed(4), Race(4)
    for _ in range(20):
        expected = int(torch.multinomial(logits.softmax(-1), 1, generator=by_torch))
        assert draw(logits).token_id == expected


def test_a_race_shows_its_numbers_again():
    draw = Race(5)
    draw(ABC)
    drawn = draw(ABC)
    probs = ABC.softmax(-1)
    q = drawn.exponentials(probs)
    scores = probs / q
    assert q[drawn.token_id].item() == drawn.exponential
    assert scores.max().item() == drawn.score
    assert int(scores.argmax()) == drawn.token_id
    with pytest.raises(ParameterError, match="not choices"):
        Choices(1)(ABC).exponentials(probs)


def test_races_of_one_seed_share_their_numbers():
    logits = torch.randn(50, generator=torch.Generator().manual_seed(2))
    qs = []
    for changed in (logits, logits / 0.3, logits.masked_fill(logits < 0, -INF)):
        drawn = Race(9)(changed)
        qs.append(drawn.exponentials(changed.softmax(-1)))
    assert torch.equal(qs[0], qs[1])
    assert torch.equal(qs[0], qs[2])


# Keyed


def test_keyed_numbers_are_these_on_every_machine():
    draw = Keyed(0)
    assert [draw(ABC).uniform for _ in range(3)] == KEYED[0]
    assert Keyed(7)(ABC).uniform == KEYED[7]
    assert Keyed(2**64 - 1)(ABC).uniform == KEYED[2**64 - 1]


KEYED = {
    0: [0.1709622343137528, 0.9998441623847016, 0.5542162064358396],
    7: 0.6236049527952496,
    2**64 - 1: 0.03474466088411354,
}


def test_a_keyed_number_depends_on_seed_and_step_alone():
    few, many = Keyed(3), Keyed(3)
    big = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    assert [few(ABC).uniform for _ in range(5)] == [many(big).uniform for _ in range(5)]


# All draws


@pytest.mark.parametrize("method", SAMPLERS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_frequencies_are_the_probabilities(method, seed):
    """Chi-square with 3 degrees of freedom; 16.3 is the 0.1 % point."""
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1, 0.0]).log()
    draw, count = method(seed), 4000
    seen = np.bincount([draw(logits).token_id for _ in range(count)], minlength=5)
    expected = np.array([0.4, 0.3, 0.2, 0.1]) * count
    assert seen[4] == 0
    assert ((seen[:4] - expected) ** 2 / expected).sum() < 16.3


@pytest.mark.parametrize("method", SAMPLERS)
def test_frequencies_over_seeds_are_the_probabilities_too(method):
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    seen = np.bincount([method(seed)(logits).token_id for seed in range(4000)])
    expected = np.array([0.4, 0.3, 0.2, 0.1]) * 4000
    assert ((seen - expected) ** 2 / expected).sum() < 16.3


@pytest.mark.parametrize("method", SAMPLERS)
def test_a_token_of_no_weight_is_never_drawn(method):
    logits = torch.tensor([-INF, 0.0])
    draw = method(0)
    assert {draw(logits).token_id for _ in range(3000)} == {1}


@pytest.mark.parametrize("method", SAMPLERS)
def test_over_many_seeds_a_token_of_no_weight_is_never_drawn(method):
    logits = torch.tensor([[0.0, 1.0]]).log().repeat(1000, 1)
    for seed, row in enumerate(logits):
        draw = method(seed)
        assert {draw(row).token_id for _ in range(3)} == {1}


@pytest.mark.parametrize("method", SAMPLERS)
def test_the_same_seed_draws_the_same_and_another_does_not(method):
    first, again, other = (letters(method(s), count=60) for s in (4, 4, 5))
    assert first == again != other


@pytest.mark.parametrize("method", [*SAMPLERS, Greedy])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_skipping_leaves_the_numbers_that_drawing_would(method, dtype):
    logits = torch.randn(50, generator=torch.Generator().manual_seed(1), dtype=dtype)
    drawn, skipped = method(3), method(3)
    for count in (0, 1, 7):
        for _ in range(count):
            drawn(logits)
        skipped.skip(count, logits.flip(0))
        assert drawn(logits) == skipped(logits)


@pytest.mark.parametrize("method", [*SAMPLERS, Greedy])
def test_global_random_state_and_the_logits_are_untouched(method):
    logits = torch.randn(30)
    kept, before = logits.clone(), states()
    for seed in range(20):
        method(seed)(logits)
    assert states() == before
    assert torch.equal(logits, kept)


def states():
    name, keys, *rest = np.random.get_state()
    numpy_state = (name, keys.tobytes(), *rest)
    return random.getstate(), numpy_state, torch.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize("method", [*SAMPLERS, Greedy])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_token_left_is_drawn(method, dtype):
    assert method(1)(torch.tensor([-INF, -5.0, -INF], dtype=dtype)).token_id == 1


def test_greedy_takes_the_lowest_id_of_a_tie_whatever_the_seed():
    logits = torch.tensor([1.0, 3.0, 3.0])
    assert {Greedy(seed)(logits).token_id for seed in range(9)} == {1}


def test_a_draw_of_a_removed_token_is_an_error(monkeypatch):
    broken = Greedy(0)(torch.tensor([1.0, 0.0]))
    monkeypatch.setattr(Greedy, "_draw", lambda self, logits: broken)
    with pytest.raises(LogitsError, match="chose removed token 0"):
        Greedy(0)(torch.tensor([-INF, 0.0]))


@pytest.mark.parametrize("method", [*SAMPLERS, Greedy])
def test_the_dictionary_holds_what_decided(method):
    drawn = method(2)(ABC)
    data = drawn.to_dict()
    assert data["method"] == method.name
    assert None not in data.values()
    assert ("uniform" in data) == (method in (Choices, Keyed))
    assert ("score" in data) == (method is Race)


@pytest.mark.parametrize("size", [1, 2, 7, 15, 16, 17, 1000, 49_152])
def test_exponentials_have_the_bits_of_torch_and_as_many_are_used(size):
    for seed in range(20):
        race, torchs = Race(seed), torch.Generator().manual_seed(seed)
        for _ in range(3):
            expected = torch.empty(size).exponential_(1, generator=torchs)
            assert torch.equal(race.exponentials(expected), expected)


def test_many_uniform_numbers_choose_what_each_chooses_alone():
    logits = torch.tensor([0.0, 1.0, 1.0, -INF, 0.0])
    uniforms = torch.rand(60, dtype=torch.float64, generator=torch.Generator())
    uniforms[0], uniforms[1] = 0.0, 1 - 2**-53
    token_ids, lows, highs = inverse_cdf(logits, uniforms)
    assert ((lows <= uniforms) & (uniforms < highs)).all()
    for uniform, *many in zip(uniforms, token_ids, lows, highs, strict=True):
        assert [*inverse_cdf(logits, uniform.item())] == many


def test_the_first_of_equals_wins_a_race():
    q = torch.tensor([1.0, 0.5, 0.5, 0.5])
    drawn = race_result(torch.tensor([0.0, 0.0, 0.0, 0.0]), q)
    assert (drawn.token_id, drawn.exponential, drawn.score) == (1, 0.5, 0.5)
    assert race_scores(torch.full((4,), 0.25), q).tolist() == [0.25, 0.5, 0.5, 0.5]
