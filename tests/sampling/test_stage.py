"""Stages: tables by hand, edges, and what holds for all of them."""

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from sampling_lab.errors import LogitsError, ParameterError
from sampling_lab.sampling.cutoffs import MinP
from sampling_lab.sampling.penalties import (
    FrequencyPenalty,
    LogitBias,
    PresencePenalty,
    RepetitionPenalty,
)
from sampling_lab.sampling.stage import check_logits, ranks
from sampling_lab.sampling.temperature import Temperature
from sampling_lab.sampling.truncation import XTC, TopK, TopNSigma, TopP, TypicalP

TOY = torch.tensor([2.0, 1.0, 0.2, -1.0])  # warm, hot, blue, run
INF = float("inf")
NAN = float("nan")

STAGES = [
    Temperature(0.0),
    Temperature(0.7),
    Temperature(1.6, shifted=True),
    Temperature(1e-45),
    TopK(1),
    TopK(3),
    TopK(3, ties="lowest_id"),
    TopK(10**9),
    TopP(0.3),
    TopP(0.9),
    TopP(1.0),
    TopP(0.3, rule="ascending"),
    TopP(0.9, rule="ascending"),
    TopP(0.6, rule="exceeding"),
    MinP(0.0),
    MinP(0.1),
    MinP(1.0),
    TopNSigma(0.5),
    TopNSigma(2.0),
]
"""Those that never remove the highest logit nor reorder any."""

OTHERS = [
    TypicalP(0.2),
    TypicalP(0.9),
    TypicalP(1.0),
    XTC(1.0, 0.1),
    XTC(0.5, 0.1, coin=0.7),
    RepetitionPenalty(1.3, (0, 0)),
    RepetitionPenalty(0.7, (0,)),
    FrequencyPenalty(0.5, (0, 0)),
    PresencePenalty(-0.5, (0, 0)),
    LogitBias({0: 1.5}),
]


def kept(stage, logits):
    logits = torch.as_tensor(logits)
    return (stage(logits) > -INF).nonzero()[:, -1].tolist()


def logs(*probs, dtype=torch.float32):
    return torch.tensor(probs, dtype=torch.float64).log().to(dtype)


numbers = st.one_of(
    st.floats(-40, 40, width=32),
    st.integers(-3, 3).map(float),  # ties
    st.just(-INF),
)
rows = st.lists(numbers, min_size=1, max_size=12).filter(lambda x: max(x) > -INF)
stages = st.sampled_from(STAGES + OTHERS)


# Temperature


@pytest.mark.parametrize(
    ("temperature", "probs"),
    [
        (0.5, [0.858, 0.116, 0.023, 0.002]),
        (1.0, [0.632, 0.232, 0.104, 0.031]),
        (2.0, [0.447, 0.271, 0.182, 0.100]),
    ],
)
@pytest.mark.parametrize("shifted", [False, True])
def test_temperature_table(temperature, probs, shifted):
    final = Temperature(temperature, shifted=shifted)(TOY).softmax(-1)
    assert [round(p, 3) for p in final.tolist()] == probs


@pytest.mark.parametrize("temperature", [0, 0.0, 1e-12, 1e-45, 5e-324])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shifted", [False, True])
def test_the_coldest_temperatures_are_greedy(temperature, dtype, shifted):
    logits = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
    probs = Temperature(temperature, shifted=shifted)(logits).softmax(-1)
    assert probs.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("logits", [[0.0, -1.0], [-1.0, -2.0], [-3e38, 3e38], [-3e38]])
@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-44, 0.5])
def test_a_division_that_overflows_leaves_the_highest(logits, temperature):
    scaled = Temperature(temperature)(torch.tensor(logits))
    assert int(scaled.argmax()) == int(torch.tensor(logits).argmax())
    assert scaled.max().isfinite()


def test_greedy_takes_the_lowest_id_of_a_tie():
    assert kept(Temperature(0.0), [1.0, 3.0, 3.0]) == [1]


def test_rows_overflow_on_their_own():
    logits = torch.tensor([[1e30, 1.0], [0.5, 0.25]])
    scaled = Temperature(1e-10)(logits)
    assert scaled[0].tolist() == [pytest.approx(1e30), -INF]
    assert scaled[1].tolist() == pytest.approx([5e9, 2.5e9])


# Top-k


@pytest.mark.parametrize(
    ("logits", "k", "with_ties", "exactly"),
    [
        ([1.0, 2.0, 2.0, 2.0, 3.0], 3, [1, 2, 3, 4], [1, 2, 4]),
        ([3.0, 3.0, 1.0], 1, [0, 1], [0]),
        ([2.0, 2.0, 2.0, 2.0], 2, [0, 1, 2, 3], [0, 1]),
        ([1.0, 2.0, 3.0], 2, [1, 2], [1, 2]),
        ([1.0, -INF, -INF], 2, [0], [0]),
        ([1.0, 2.0], 50, [0, 1], [0, 1]),
        ([1.0, 2.0], 2, [0, 1], [0, 1]),
    ],
)
def test_top_k_and_ties(logits, k, with_ties, exactly):
    assert kept(TopK(k, ties="kept"), logits) == with_ties
    assert kept(TopK(k, ties="lowest_id"), logits) == exactly


# Top-p


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("probs", "p", "ids"),
    [
        ((0.3, 0.1, 0.1, 0.5), 0.8, [0, 3]),
        ((0.5, 0.41, 0.09), 0.9, [0, 1]),
        ((0.1, 0.2, 0.7), 0.8, [1, 2]),
        ((0.25, 0.25, 0.25, 0.25), 0.5, [0, 1]),
        ((0.25, 0.25, 0.25, 0.25), 0.51, [0, 1, 2]),
        ((0.6, 0.4), 0.01, [0]),
        ((0.6, 0.4), 1.0, [0, 1]),
        ((0.999999, 0.000001), 0.9999999, [0]),
    ],
)
def test_the_token_that_reaches_p_stays(dtype, probs, p, ids):
    assert kept(TopP(p), logs(*probs, dtype=dtype)) == ids


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rule", "ids"), [("descending", [0, 3]), ("exceeding", [0, 1, 3])]
)
def test_a_mass_of_exactly_p(rule, ids, dtype):
    logits = logs(0.3, 0.1, 0.1, 0.5, dtype=dtype)
    assert kept(TopP(0.8, rule=rule), logits) == ids


@pytest.mark.parametrize("rule", ["descending", "exceeding", "ascending"])
@pytest.mark.parametrize(
    ("temperature", "first", "last"),
    [
        (0.5, [1.0, 0, 0, 0], [0.881, 0.119, 0, 0]),
        (1.5, [0.551, 0.283, 0.166, 0], [0.661, 0.339, 0, 0]),
    ],
)
def test_the_order_of_temperature_and_top_p(temperature, first, last, rule):
    cool, cut = Temperature(temperature), TopP(0.8, rule=rule)
    for stage_1, stage_2, probs in ((cool, cut, first), (cut, cool, last)):
        final = stage_2(stage_1(TOY)).softmax(-1)
        assert [round(p, 3) for p in final.tolist()] == probs


@pytest.mark.parametrize("rule", ["descending", "ascending"])
def test_top_p_of_one_changes_no_bit(rule):
    logits = torch.randn(3, 100)
    assert torch.equal(TopP(1.0, rule=rule)(logits), logits)


@pytest.mark.parametrize("size", [2, 7, 1025, 50_304, 163_840])
@pytest.mark.parametrize("kind", ["plain", "ties", "bf16", "flat", "holes", "steep"])
@pytest.mark.parametrize("p", [0.003, 0.5, 0.9, 0.999])
def test_top_p_equals_its_rule_written_with_a_full_sort(size, kind, p):
    logits = adversarial(size, kind)
    for rule in ("ascending", "descending", "exceeding"):
        expected = full_sort_top_p(logits, p, rule)
        assert torch.equal(TopP(p, rule=rule)(logits), expected), rule


def adversarial(size, kind):
    generator = torch.Generator().manual_seed(size)
    noise = torch.randn(size, generator=generator)
    if kind == "ties":
        return (noise * 2).round()
    if kind == "bf16":
        return (noise * 3).bfloat16().float()
    if kind == "flat":  # every logit within a few rounding steps of every other
        return 1 + noise * 1e-6
    if kind == "holes":
        noise[torch.rand(size, generator=generator) < 0.5] = -INF
        noise[size // 2] = 4.0
    return noise * (30 if kind == "steep" else 3)


def full_sort_top_p(logits, p, rule):
    if rule == "ascending":
        ordered, order = torch.sort(logits, descending=False)
        removed = ordered.softmax(-1).cumsum(-1) <= (1 - p)
        removed[-1] = False
    elif rule == "exceeding":
        ordered, order = torch.sort(logits, descending=True)
        before = ordered.softmax(-1).cumsum(-1).roll(1)
        before[0] = 0
        removed = before > p
    else:
        ordered, order = torch.sort(logits, descending=True, stable=True)
        probs = ordered.double().softmax(-1)
        removed = probs.cumsum(-1) - probs >= p - 1e-6
        removed[0] = False
    return logits.masked_fill(removed.scatter(0, order, removed), -INF)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "make", [lambda p: TopP(p), lambda p: TopP(p, rule="ascending"), MinP]
)
def test_half_precision_keeps_what_float32_keeps(p, dtype, make):
    logits = (torch.randn(50_304) * 3).to(dtype)
    result = make(p)(logits)
    assert result.dtype == torch.float32
    assert torch.equal(result, make(p)(logits.float()))


# Min-p


def test_min_p_compares_with_the_highest_probability():
    row = torch.tensor([-5.0, 2.0, 1.9, -1.0])
    assert kept(MinP(0.5), row) == [1, 2]
    assert torch.equal(MinP(0.5)(row.repeat(2, 1))[1], MinP(0.5)(row))
    assert kept(MinP(1.0), [2.0, 2.0, 1.0]) == [0, 1]


# All stages


@given(stages, rows)
def test_at_least_one_token_stays_and_removed_ones_stay_removed(stage, row):
    logits = torch.tensor(row)
    result = stage(logits)
    assert (result > -INF).any()
    assert not result.isnan().any()
    assert not (result == INF).any()
    assert (result[logits == -INF] == -INF).all()
    assert result.shape == logits.shape
    assert result.dtype == torch.float32


@given(stages, rows)
def test_the_input_is_unchanged_and_two_calls_agree(stage, row):
    logits = torch.tensor(row)
    before = logits.clone()
    first, second = stage(logits), stage(logits)
    assert torch.equal(logits, before)
    assert torch.equal(first, second)
    assert first.data_ptr() != logits.data_ptr()


@given(stages, st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32))
def test_a_batch_equals_its_rows(stage, batch, size, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, 2, size, generator=generator) * 2
    logits = logits.round() if seed % 2 else logits
    result = stage(logits)
    for i in range(batch):
        for j in range(2):
            assert torch.equal(result[i, j], stage(logits[i, j]))


@given(st.sampled_from([s for s in STAGES if not isinstance(s, Temperature)]), rows)
def test_a_cut_keeps_the_highest_and_leaves_the_values(stage, row):
    logits = torch.tensor(row)
    result = stage(logits)
    stays = result > -INF
    assert torch.equal(result[stays], logits[stays])
    assert result.max() == logits.max()
    if not stays.all():
        assert logits[stays].min() >= logits[~stays].max()


@given(st.sampled_from([TopK(2), TopK(2, "lowest_id"), MinP(0.2)]), rows)
def test_a_second_cut_of_the_same_kind_removes_nothing(stage, row):
    once = stage(torch.tensor(row))
    assert torch.equal(stage(once), once)


@given(
    st.sampled_from([TopK(2), TopK(2, "lowest_id"), MinP(0.2), TopP(0.6)]),
    st.lists(st.integers(-8, 8), min_size=1, max_size=8, unique=True),
)
def test_float64_keeps_what_float32_keeps(stage, row):
    narrow = torch.tensor(row, dtype=torch.float32)
    result = stage(narrow.double())
    assert result.dtype == torch.float64
    assert torch.equal(result > -INF, stage(narrow) > -INF)


@given(rows, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_larger_p_keeps_more(row, p, q):
    logits = torch.tensor(row)
    for rule in ("descending", "exceeding", "ascending"):
        small, large = (set(kept(TopP(x, rule), logits)) for x in sorted((p, q)))
        assert small <= large


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_vocabulary_matters_only_in_ties(row, random):
    row = list(dict.fromkeys(row))
    places = list(range(len(row)))
    random.shuffle(places)
    logits = torch.tensor(row)
    for stage in (TopK(3, "lowest_id"), TopP(0.7), MinP(0.1), Temperature(0.0)):
        assert torch.equal(stage(logits)[places], stage(logits[places]))


@pytest.mark.parametrize("stage", STAGES + OTHERS, ids=str)
def test_gradients_and_views_are_no_obstacle(stage):
    wide = torch.randn(4, 8, requires_grad=True)
    result = stage(wide[:, ::2])
    assert not result.requires_grad
    assert torch.equal(result, stage(wide[:, ::2].detach().contiguous()))


@pytest.mark.parametrize("stage", STAGES + OTHERS, ids=str)
def test_evidence_is_true_of_exactly_the_removed(stage):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(9, generator=generator) * 2  # no ties
        criterion = stage.criterion(logits)
        removed = stage(logits) == -INF
        if criterion is None:
            assert not removed.any()
            continue
        relation = {"<": torch.lt, ">": torch.gt, "<=": torch.le, ">=": torch.ge}
        told = relation[criterion.relation](criterion.values, criterion.threshold)
        assert torch.equal(told, removed)


# Values outside the rules


@pytest.mark.parametrize("value", [-1, NAN, INF, -INF, True, "1", None, 10**400])
def test_bad_temperatures(value):
    with pytest.raises(ParameterError, match="temperature must be a finite number"):
        Temperature(value)


@pytest.mark.parametrize("value", [0, -1, 0.5, 2.0, True, "40", NAN, None])
def test_bad_ks(value):
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        TopK(value)


@pytest.mark.parametrize("value", [0, -0.1, 1.5, NAN, INF, True, "0.9", None])
def test_bad_ps(value):
    with pytest.raises(ParameterError, match=r"p must be in \(0, 1\]"):
        TopP(value)


@pytest.mark.parametrize("value", [-0.1, 1.5, NAN, True, "0.1", None])
def test_bad_min_ps(value):
    with pytest.raises(ParameterError, match=r"min_p must be in \[0, 1\]"):
        MinP(value)


def test_bad_rules_name_the_good_ones():
    with pytest.raises(ParameterError, match="ties must be one of 'kept', 'lowest_id'"):
        TopK(1, ties="all")
    with pytest.raises(ParameterError, match="rule must be one of 'descending', 'exc"):
        TopP(0.5, rule="up")


def test_numbers_of_other_libraries_are_numbers():
    assert Temperature(np.float32(0.5)) == Temperature(0.5)
    assert TopK(np.int64(3)) == TopK(3)
    assert Temperature(2) == Temperature(2.0)


# Logits outside the rules


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([-INF, -INF], "no token is allowed"),
        ([0.0, -INF, NAN], r"got 1 NaN \(first at 2\)"),
        ([INF, 1.0], r"got 1 \+inf \(first at 0\)"),
        ([NAN, INF, NAN], r"got 2 NaN \(first at 0\)"),
        ([[0.0, 1.0], [NAN, 1.0]], r"first at \(1, 0\)"),
        ([[0.0, 1.0], [-INF, -INF]], "no token is allowed"),
        ([], "at least one token"),
    ],
)
def test_nasty_logits_are_named(logits, message):
    with pytest.raises(LogitsError, match=message):
        check_logits(torch.tensor(logits))


def test_integers_are_no_logits():
    with pytest.raises(LogitsError, match=r"float tensor .* got torch.int64"):
        check_logits(torch.tensor([1, 2]))


@pytest.mark.parametrize("logits", [[0.0], [0.0, -INF], [-1e38, 3e38]])
def test_odd_but_good_logits_pass(logits):
    check_logits(torch.tensor(logits))


# Helpers


@given(rows)
def test_ranks_count_from_the_highest_equal_ones_by_id(row):
    ids = range(len(row))
    order = sorted(ids, key=lambda i: (-row[i], i))
    expected = [order.index(i) + 1 for i in ids]
    assert ranks(torch.tensor(row)).tolist() == expected
    assert ranks(torch.tensor([row, row]))[1].tolist() == expected
