"""The checks can fail: each rule is broken once, and a named test goes red."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from sampling_lab.sampling import (
    cutoffs,
    dialects,
    draws,
    ledger,
    nucleus,
    parameters,
    params,
    penalties,
    sequences,
    temperature,
    truncation,
)
from tests.models import test_conformance
from tests.sampling import (
    test_chain,
    test_dialects,
    test_draws,
    test_params,
    test_penalties,
    test_stage,
    test_truncation,
)

INF = float("inf")
Check = Callable[[], None]


@dataclass
class Mutant:
    """One broken rule, and a check that has to notice."""

    name: str
    target: object
    attribute: str
    broken: object
    check: Check


def dialect(name, **changes):
    """Return the dialects with one of them changed."""
    changed = dataclasses.replace(dialects.DIALECTS[name], **changes)
    return {**dialects.DIALECTS, name: changed}


def swapped(name, first, second):
    """Return the dialects with two parameters of one swapped."""
    own = list(dialects.DIALECTS[name].own)
    i, j = own.index(first), own.index(second)
    own[i], own[j] = own[j], own[i]
    return dialect(name, own=tuple(own))


def changed_rule(name, **changes):
    """Return the rules of top-p with one of them changed."""
    return {**nucleus.NUCLEI, name: nucleus.NUCLEI[name]._replace(**changes)}


def order_table(name, temperature, probs):
    """Check a row of the table of orders with the dialect's own chain."""

    def check():
        test_dialects.test_temperature_first_or_last(name, temperature, *probs)

    return check


def recorded_rows():
    test_dialects.test_scratch_llm_keeps_what_the_original_filter_kept()


HOT = (1.5, ([0.551, 0.283, 0.166, 0], [0.661, 0.339, 0, 0]))


def crossing():
    test_stage.test_the_token_that_reaches_p_stays(
        torch.float32, (0.5, 0.41, 0.09), 0.9, [0, 1]
    )


def rows():
    test_conformance.check_rows(40, 150)


def in_place(self, logits):
    return logits.masked_fill_(logits < logits.max(), -INF)


def cut_softmax(self):
    """Return the softmax of the top 50 alone, as if there were no others."""
    highest = self.logits.topk(min(50, len(self.logits)))
    cut = torch.full_like(self.logits, -INF)
    return cut.scatter(0, highest.indices, highest.values).softmax(-1)


def by_id(logits):
    ids = (logits > -INF).nonzero().squeeze(-1)
    return ids, logits[ids].double().softmax(-1).cumsum(0)


def mean_deviation(self, logits):
    return logits.amax(-1, keepdim=True) - self.n * logits.std(-1, keepdim=True)


COUNT_BELOW = truncation._count_below
REPEATING = sequences.NoRepeatNGram.repeating

MUTANTS = [
    Mutant(
        "the token that reaches p is dropped",
        truncation,
        "NUCLEI",
        changed_rule(
            "descending",
            compare=lambda ordered, _, p: (ordered.softmax(-1).cumsum(-1), p),
        ),
        crossing,
    ),
    Mutant(
        "the ascending rule removes half as much",
        truncation,
        "_count_below",
        lambda mass, bound, equal=False: COUNT_BELOW(mass, bound / 2, equal=equal),
        rows,
    ),
    Mutant(
        "the ascending rule removes ties by id",
        truncation,
        "NUCLEI",
        changed_rule("ascending", ties="lowest_id"),
        lambda: test_stage.test_top_p_equals_its_rule_written_with_a_full_sort(
            1025, "ties", 0.5
        ),
    ),
    Mutant(
        "scratch LLM's nucleus breaks ties by id",
        truncation,
        "NUCLEI",
        changed_rule("exceeding", ties="lowest_id"),
        recorded_rows,
    ),
    Mutant(
        "scratch LLM drops the token that passes p",
        dialects,
        "DIALECTS",
        dialect("scratch_llm", nucleus="descending"),
        lambda: test_dialects.test_scratch_llm_keeps_the_token_that_passes_p(
            10, 0.8, 9
        ),
    ),
    Mutant(
        "temperature comes after top-p",
        dialects,
        "DIALECTS",
        swapped("transformers", "temperature", "top_p"),
        order_table("transformers", *HOT),
    ),
    Mutant(
        "temperature comes before top-p",
        dialects,
        "DIALECTS",
        swapped("llama.cpp", "temperature", "top_p"),
        order_table("llama.cpp", *HOT),
    ),
    Mutant(
        "min-p comes before top-p",
        dialects,
        "DIALECTS",
        swapped("transformers", "min_p", "top_p"),
        test_dialects.test_the_mass_of_a_nucleus_may_be_counted_before_or_after_min_p,
    ),
    Mutant(
        "a tie at k is kept",
        dialects,
        "DIALECTS",
        dialect("xslm", ties="kept"),
        lambda: test_dialects.test_ties_at_k("xslm"),
    ),
    Mutant(
        "a tie at k is cut",
        dialects,
        "DIALECTS",
        dialect("transformers", ties="lowest_id"),
        rows,
    ),
    Mutant(
        "the highest ids of a tie are kept",
        truncation,
        "_keep",
        lambda logits, least, count, ties: logits.masked_fill(
            (logits < least)
            | (
                (logits == least) & ((logits == least).flip(-1).cumsum(-1).flip(-1) > 1)
            ),
            -INF,
        ),
        lambda: test_dialects.test_ties_at_k("xslm"),
    ),
    Mutant(
        "a cut list is softmaxed again",
        ledger.Distribution,
        "probs",
        property(cut_softmax),
        test_chain.test_the_rest_of_the_vocabulary_counts_in_a_short_table,
    ),
    Mutant(
        "temperature is linear",
        temperature.Temperature,
        "_scaled",
        lambda self, logits: logits * (2 - self.temperature),
        lambda: test_stage.test_temperature_table(
            0.5, [0.858, 0.116, 0.023, 0.002], False
        ),
    ),
    Mutant(
        "greedy keeps every tie",
        temperature,
        "_only_highest",
        lambda logits: logits.masked_fill(logits < logits.amax(-1, keepdim=True), -INF),
        test_stage.test_greedy_takes_the_lowest_id_of_a_tie,
    ),
    Mutant(
        "min-p is an absolute probability",
        cutoffs.MinP,
        "__call__",
        lambda self, x: x.masked_fill(x.softmax(-1) < self.min_p, -INF),
        test_stage.test_min_p_compares_with_the_highest_probability,
    ),
    Mutant(
        "half precision stays half",
        cutoffs,
        "as_float",
        lambda logits: logits.detach(),
        lambda: test_stage.test_half_precision_keeps_what_float32_keeps(
            0.1, torch.float16, cutoffs.MinP
        ),
    ),
    Mutant(
        "a stage writes into its input",
        truncation.TopK,
        "__call__",
        in_place,
        test_stage.test_the_input_is_unchanged_and_two_calls_agree,
    ),
    Mutant(
        "the typical mass leaves out the token that reaches p",
        truncation.TypicalP,
        "_compared",
        lambda self, x: (d := (x.softmax(-1) - 0.3).abs(), d.amin(-1, keepdim=True)),
        rows,
    ),
    Mutant(
        "sigma divides by one less",
        truncation.TopNSigma,
        "_lowest",
        mean_deviation,
        lambda: test_truncation.test_top_n_sigma_counts_deviations_of_what_is_possible(
            [0.0, 1.0, 2.0, 3.0, 4.0], 1.3, [3, 4]
        ),
    ),
    Mutant(
        "XTC removes every top choice",
        truncation.XTC,
        "_compared",
        lambda self, x: (x.softmax(-1), x.new_full((1,), self.threshold)),
        lambda: test_truncation.test_xtc_leaves_the_least_likely_of_the_top_choices(
            (0.5, 0.3, 0.15, 0.05), 0.1, [2, 3]
        ),
    ),
    Mutant(
        "XTC ignores its coin",
        truncation.XTC,
        "acts",
        True,
        test_truncation.test_the_coin_falls_as_often_as_asked,
    ),
    Mutant(
        "a repetition penalty divides negative logits too",
        penalties.RepetitionPenalty,
        "_lowered",
        lambda self, values, times: values / self.penalty,
        rows,
    ),
    Mutant(
        "a frequency penalty counts once",
        penalties.FrequencyPenalty,
        "_lowered",
        lambda self, values, times: values - self.penalty,
        lambda: test_penalties.test_tables(
            penalties.FrequencyPenalty(0.5, test_penalties.SAID),
            [2.0, -1.5, -0.5, 2.5, -INF],
            torch.float32,
        ),
    ),
    Mutant(
        "n-grams are one token longer",
        sequences.NoRepeatNGram,
        "repeating",
        lambda self: REPEATING(dataclasses.replace(self, n=self.n + 1)),
        rows,
    ),
    Mutant(
        "the window is ignored",
        parameters,
        "PENALTIES",
        (),
        lambda: test_params.test_what_a_repetition_penalty_counts(
            {"penalty_window": 3}, (3, 2, 5)
        ),
    ),
    Mutant(
        "the prompt counts everywhere",
        dialects,
        "DIALECTS",
        dialect("vllm", ignores_prompt=frozenset()),
        test_params.test_where_the_prompt_counts_is_the_engines_way,
    ),
    Mutant(
        "greedy obeys the cuts",
        params,
        "SAMPLING_ONLY",
        (),
        test_params.test_greedy_obeys_adjustments_and_ignores_cuts,
    ),
    Mutant(
        "the race runs with uniform numbers",
        draws,
        "_exponentials",
        lambda probs, generator: torch.rand(probs.shape, generator=generator).to(
            probs.dtype
        ),
        lambda: test_draws.test_a_race_is_multinomial_with_one_sample(17),
    ),
    Mutant(
        "the race uses the global generator",
        draws,
        "_exponentials",
        lambda probs, generator: torch.empty_like(probs).exponential_(1),
        lambda: test_draws.test_global_random_state_and_the_logits_are_untouched(
            draws.Race
        ),
    ),
    Mutant(
        "the wheel's segments are in order of id",
        draws,
        "segments",
        by_id,
        lambda: test_draws.test_segments_are_in_rank_order_and_equal_ones_by_id(
            draws.Choices
        ),
    ),
    Mutant(
        "a keyed number forgets the step",
        draws,
        "_hashed",
        lambda key: 0.25,
        test_draws.test_keyed_numbers_are_these_on_every_machine,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_turns_a_check_red(mutant, monkeypatch):
    mutant.check()
    monkeypatch.setattr(mutant.target, mutant.attribute, mutant.broken)
    with pytest.raises((AssertionError, ExceptionGroup)):  # hypothesis groups them
        mutant.check()
