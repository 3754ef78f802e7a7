"""What every checkpoint format keeps to, tried on the checkpoints themselves."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from functools import cache
from itertools import permutations

import numpy as np
import pytest
import torch

from sampling_lab import Generation, SamplingParams, generate, load, replay, stream
from sampling_lab.errors import CheckpointError
from sampling_lab.models.formats import FORMATS, detect
from sampling_lab.models.torch_file import read_torch_file
from tests.helpers import ROOT

CHECKPOINTS = {
    "xslm": "checkpoints/xslm/model.json",
    "scratch_llm": "checkpoints/scratch_llm/tiny_sft.pt",
    "kimi_k3": "checkpoints/kimi_k3/last.pt",
    "huggingface": "checkpoints/smollm2-135m-instruct",
}
GREEDY = SamplingParams(temperature=0)
SAMPLED = SamplingParams(temperature=1.5, top_k=9, seed=8)
IDS = [7, 13, 29, 3, 17, 17, 30, 5, 11, 2, 23, 19, 8, 31]
PROMPT = IDS[:3]
TOLERANCE = {"atol": 1e-4, "rtol": 1e-5}  # logits are in the tens


def path_of(name):
    path = ROOT / CHECKPOINTS[name]
    if not path.exists():
        pytest.skip("SmolLM2 is not fetched: run `sampling-lab fetch smollm2`")
    return path


@cache
def loaded(name):
    return load(path_of(name), device="cpu")


@pytest.fixture(params=CHECKPOINTS)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return loaded(name)


def whole(model, ids):
    """Return the logits of a model that remembers nothing."""
    model.reset()
    return model.logits(ids)


def strict_json(text):
    def rule_error(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=rule_error)


# What is loaded


def test_every_format_has_its_checkpoint():
    assert [*CHECKPOINTS] == [*FORMATS]


def test_the_format_is_found_and_the_card_is_true(name, model):
    card = model.card
    assert card.format == name
    assert strict_json(json.dumps(card.to_dict())) == card.to_dict()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in card.files))
    assert card.digest == digest.hexdigest()
    assert model.logits(PROMPT).shape == (card.vocab_size,)
    assert str(model.logits(PROMPT).dtype) == f"torch.{card.dtype}"


@pytest.mark.parametrize("name", ["xslm", "scratch_llm", "kimi_k3"])
def test_a_file_under_another_name_is_still_known(name, tmp_path):
    path = shutil.copy(path_of(name), tmp_path / "weights.bin")
    assert detect(path) == name


# Logits


def test_the_first_greedy_token_is_the_argmax_of_the_logits(model):
    for ids in (IDS[:1], PROMPT, IDS):
        step = next(stream(model, ids, GREEDY, max_new_tokens=1))
        assert step.token_id == int(whole(model, ids).argmax())
        assert (step.rank, step.final_prob) == (1, 1.0)


@pytest.mark.parametrize(
    "lengths",
    [[14], [13, 14], range(1, 15), [5, 14], [14, 9], [14, 1, 13]],
    ids=["prefill", "prefill + 1", "one by one", "split", "undo", "undo and again"],
)
def test_the_way_to_a_prefix_does_not_show(model, lengths):
    expected = whole(model, IDS[: lengths[-1]])
    model.reset()
    for length in lengths:
        logits = model.logits(IDS[:length])
    torch.testing.assert_close(logits, expected, **TOLERANCE)


def test_another_prompt_sees_nothing_of_the_first(model):
    other = [*IDS[:4], *reversed(IDS)]
    expected = whole(model, other)
    whole(model, IDS)
    torch.testing.assert_close(model.logits(other), expected, **TOLERANCE)
    torch.testing.assert_close(whole(model, other), expected, **TOLERANCE)


def test_a_batch_equals_its_rows(model):
    rows = [IDS[:3], IDS[:11], IDS[5:6]]
    expected = torch.stack([whole(model, row) for row in rows])
    model.reset()
    torch.testing.assert_close(model.logits_batch(rows), expected, **TOLERANCE)


def test_asking_again_runs_no_forward_pass(model):
    model.reset()
    first = generate(model, PROMPT, SAMPLED, max_new_tokens=5)
    passes = model.forward_passes
    assert generate(model, PROMPT, SAMPLED, max_new_tokens=5) == first
    for params in (GREEDY, SamplingParams(temperature=0.1, top_p=0.5, seed=3)):
        next(stream(model, PROMPT, params))
    assert first.steps[-1].ledger().raw_probs.isfinite().all()
    assert model.forward_passes == passes


# State


def global_state():
    return {
        "random": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "safe": set(torch.serialization.get_safe_globals()),  # in no order
    }


def test_loading_and_generating_change_nothing_global(name):
    path = path_of(name)
    before = global_state()
    fresh = load(path, device="cpu")
    generate(fresh, PROMPT, SAMPLED, max_new_tokens=3)
    generate(fresh, PROMPT, SAMPLED.replace(seed=None), max_new_tokens=3)
    assert global_state() == before


def test_a_model_is_in_eval_mode_and_asks_for_no_gradients(model):
    networks = [v for v in vars(model).values() if isinstance(v, torch.nn.Module)]
    assert not any(part.training for net in networks for part in net.modules())
    logits = model.logits(PROMPT)
    assert logits.grad_fn is None
    assert not logits.requires_grad


def test_a_generation_kept_as_json_is_replayed(model):
    first = generate(model, PROMPT, SAMPLED, max_new_tokens=4)
    kept = Generation.from_dict(strict_json(json.dumps(first.to_dict())))
    assert kept == first
    model.reset()
    assert replay(kept, model).same


# The command line

# The other formats' greedy commands are in `test_cli`.
COMMANDS = [*((name, "sample") for name in CHECKPOINTS), ("xslm", "greedy")]


def files_beside(path):
    folder = path if path.is_dir() else path.parent
    files = [file.stat() for file in sorted(folder.rglob("*"))]
    return [(file.st_ino, file.st_mtime_ns, file.st_size) for file in files]


@pytest.mark.parametrize(("name", "mode"), COMMANDS)
def test_the_command_gives_what_the_library_call_gives(name, mode):
    path, digest = path_of(name), loaded(name).card.digest
    before = files_beside(path)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sampling_lab", "generate"),
            *("--checkpoint", CHECKPOINTS[name], "--token-ids", "7,13,29"),
            *("--device", "cpu", "--mode", mode, "--max-new-tokens", "5"),
            *("--temperature", "1.5", "--top-k", "9", "--seed", "8"),
        ],
        capture_output=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert files_beside(path) == before

    document = strict_json(done.stdout.decode("utf-8"))
    params = GREEDY if mode == "greedy" else SAMPLED
    expected = generate(loaded(name), PROMPT, params, max_new_tokens=5)
    assert document["prompt_token_ids"] == PROMPT
    assert document["generated_token_ids"] == [*expected.token_ids]
    assert document["generated_text"] == expected.text
    assert document["finish_reason"] == expected.finish_reason
    assert document["seed"] == (None if mode == "greedy" else 8)
    assert document["checkpoint"]["format"] == name
    assert document["checkpoint"]["sha256"] == digest  # taken at its end


# Files of another system, and hostile ones


class Opens:
    """Unpickling it would make a directory, which the tests look for."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):  # noqa: D105
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("format", [None, *FORMATS])
@pytest.mark.parametrize("name", ["scratch_llm", "kimi_k3"])
def test_a_pickle_that_would_run_code_is_refused_as_every_format(
    name, format, tmp_path
):
    marker = tmp_path / "made"
    content = read_torch_file(path_of(name))
    path = tmp_path / "last.pt"
    torch.save({**content, "metrics": {"loss": [Opens(marker)]}}, path)
    with pytest.raises(CheckpointError, match=r"asks for (posix|nt)\.mkdir") as caught:
        load(path, format=format)
    assert "\n" not in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize(("name", "format"), [*permutations(FORMATS, 2)])
def test_a_file_of_another_system_is_named_with_the_format_that_fits(name, format):
    path = path_of(name)
    with pytest.raises(CheckpointError) as caught:
        load(path, format=format)
    assert f"format='{name}'" in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gguf_is_no_file_of_the_others(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"GGUF\x03\0\0\0" + bytes(64))
    for format in ("xslm", "scratch_llm", "kimi_k3"):
        with pytest.raises(CheckpointError, match=r"\.gguf.*format='huggingface'"):
            load(path, format=format)
