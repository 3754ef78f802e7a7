"""Settings and seeds side by side: each run as if alone, the first difference found."""

import pytest
import torch

from sampling_lab import Grid, SamplingParams, generate
from sampling_lab.errors import ParameterError, PromptError
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests.fakes import TableModel
from tests.tiny import llama as tiny_llama

SETTINGS = [
    SamplingParams(temperature=0),
    SamplingParams(temperature=0.8, top_k=5),
    SamplingParams(temperature=1.5, top_p=0.9, repetition_penalty=1.2),
]


@pytest.fixture(scope="module")
def network():
    return HuggingFaceModel.wrap(tiny_llama())


@pytest.fixture
def llama(network):
    network.reset()
    return network


@pytest.mark.parametrize("seeds", [[3], [1, 2, 3]])
def test_each_run_draws_what_it_draws_alone(llama, seeds):
    grid = Grid(llama, [3, 1, 4], SETTINGS, seeds, max_new_tokens=12).to_the_end()
    llama.reset()
    for row, params in zip(grid.cells(), SETTINGS, strict=True):
        for cell, seed in zip(row, seeds, strict=True):
            own = params.replace(seed=seed)
            alone = generate(llama, [3, 1, 4], own, max_new_tokens=12)
            for name in ("token_ids", "finish_reason", "params"):
                assert getattr(cell.generation, name) == getattr(alone, name)
            assert cell.params == alone.params


def test_rows_go_together_in_one_pass(llama):
    before = llama.forward_passes
    Grid(llama, [3, 1, 4], SETTINGS, [1, 2], max_new_tokens=10).to_the_end()
    assert llama.forward_passes - before <= 10


def test_rows_that_end_early_leave_the_others_as_they_are(llama):
    options = {"max_new_tokens": 20, "stop_token_ids": list(range(0, 40))}
    grid = Grid(llama, [7, 7], SETTINGS, range(5), **options).to_the_end()
    lengths = {len(c.generation.token_ids) for row in grid.cells() for c in row}
    assert len(lengths) > 1
    llama.reset()
    for row in grid.cells():
        for cell in row:
            alone = generate(llama, [7, 7], cell.params, **options)
            assert cell.generation.token_ids == alone.token_ids


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2, 3], [1, 2, 4], [5, 2, 4]],
        [[1, 2, 3], [1, 2]],
        [[4], [5]],
        [[1, 2, 3], [1, 2, 3]],
        [[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 2, 2]],
    ],
)
def test_a_batch_gives_what_each_row_gives_alone(llama, rows):
    batch = llama.logits_batch(rows)
    longer = llama.logits_batch([[*row, 9] for row in reversed(rows)])
    llama.reset()
    alone = torch.stack([llama.logits(row) for row in rows])
    after = torch.stack([llama.logits([*row, 9]) for row in reversed(rows)])
    torch.testing.assert_close(batch, alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(longer, after, atol=1e-5, rtol=0)


def test_a_batch_is_remembered(llama):
    llama.logits_batch([[1, 2, 3], [1, 2, 4]])
    passes = llama.forward_passes
    llama.logits([1, 2, 4])
    llama.logits_batch([[1, 2, 4], [1, 2, 3]])
    assert llama.forward_passes == passes


def test_an_interrupted_batch_leaves_no_half_written_cache(llama, monkeypatch):
    llama.logits_batch([[1, 2, 3], [1, 2, 4]])
    forward = llama.network.forward

    def interrupted(**inputs):
        forward(**inputs)  # its caches are written
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(llama.network, "forward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            llama.logits_batch([[1, 2, 3, 5], [1, 2, 4, 5]])
    batch = llama.logits_batch([[1, 2, 3, 5], [1, 2, 4, 5]])
    llama.reset()
    torch.testing.assert_close(batch[1], llama.logits([1, 2, 4, 5]), atol=1e-5, rtol=0)


def table_model():
    table = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    return TableModel(table, [bytes([97 + i]) for i in range(6)])


def test_first_difference_and_distinct_answers():
    grid = Grid(table_model(), "ab", SETTINGS[:2], [1, 2, 1], max_new_tokens=8)
    cells = grid.to_the_end().cells()
    assert [cell.first_difference for cell in cells[0]] == [None, None, None]
    assert cells[1][0].generation == cells[1][2].generation
    reference = cells[0][0].generation.token_ids
    for cell in cells[1]:
        tokens = cell.generation.token_ids
        first = next(i for i in range(8) if tokens[i] != reference[i])
        assert cell.first_difference == first
    answers = grid.answers()
    assert sum(answers.values()) == 6
    assert max(answers.values()) == next(iter(answers.values())) >= 3


def test_any_cell_can_be_the_reference():
    grid = Grid(table_model(), "ab", SETTINGS[1:2], [1, 2], max_new_tokens=8)
    cells = grid.to_the_end().cells(reference=(0, 1))
    assert cells[0][1].first_difference is None
    assert cells[0][0].first_difference is not None


@pytest.mark.parametrize(("settings", "seeds"), [([], [1]), (SETTINGS, [])])
def test_an_empty_grid_is_refused(settings, seeds):
    with pytest.raises(ParameterError, match="must hold at least one"):
        Grid(table_model(), "a", settings, seeds)


def test_bad_seeds_and_prompts_are_refused_before_anything_runs():
    model = table_model()
    with pytest.raises(ParameterError, match="seed must be"):
        Grid(model, "a", SETTINGS, [-1])
    with pytest.raises(PromptError):
        Grid(model, "", SETTINGS, [1])
    assert model.forward_passes == 0
