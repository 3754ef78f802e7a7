"""What every checkpoint format keeps to: one table of rules by one of models."""

import hashlib
import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from transformers.utils import logging

from sampling_lab import Generation, SamplingParams, generate, load, replay, stream
from sampling_lab.cli.main import main
from sampling_lab.errors import ParameterError
from sampling_lab.models.formats import FORMATS as KNOWN
from sampling_lab.models.formats import detect
from tests.formats import (
    FORMATS,
    MODELS,
    UNCACHED,
    model_of,
    threads,
    tolerance_of,
    whole,
)
from tests.helpers import ROOT

GREEDY = SamplingParams(temperature=0)
SAMPLED = SamplingParams(temperature=1.5, top_k=9, seed=8)
IDS = [7, 13, 29, 3, 17, 17, 30, 5, 11, 2, 23, 19, 8, 31, 38, 0, 25, 12, 12, 36]
PROMPT = IDS[:3]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny tensors gain nothing from more, and a busy machine loses much."""
    with threads(1):
        yield


@pytest.fixture(params=FORMATS)
def name(request):
    return request.param


@pytest.fixture(params=MODELS)
def any_name(request):
    return request.param


@pytest.fixture
def model(any_name):
    model = model_of(any_name)
    model.reset()
    return model


@pytest.fixture
def close(any_name):
    def close(found, expected):
        torch.testing.assert_close(found, expected, **tolerance_of(any_name))

    return close


def strict_json(text):
    def rule_error(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=rule_error)


# What is loaded


def test_every_format_has_its_checkpoint():
    assert [*FORMATS] == [*KNOWN]
    assert all(name == known.name for name, known in KNOWN.items())


def test_the_format_is_found_and_the_card_is_true(name):
    model = FORMATS[name].load()
    card = model.card
    assert card.format == name
    assert strict_json(json.dumps(card.to_dict())) == card.to_dict()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in card.files))
    assert card.digest == digest.hexdigest()
    assert model.logits(PROMPT).shape == (card.vocab_size,)
    assert str(model.logits(PROMPT).dtype) == f"torch.{card.dtype}"


@pytest.mark.parametrize("name", ["xslm", "scratch_llm", "kimi_k3"])
def test_a_file_under_another_name_is_still_known(name, tmp_path):
    path = shutil.copy(FORMATS[name].path, tmp_path / "weights.bin")
    assert detect(path) == name


# Logits


def test_the_first_greedy_token_is_the_argmax_of_the_logits(model):
    for ids in (IDS[:1], PROMPT, IDS):
        step = next(stream(model, ids, GREEDY, max_new_tokens=1))
        assert step.token_id == int(whole(model, ids).argmax())
        assert (step.rank, step.final_prob) == (1, 1.0)


@pytest.mark.parametrize(
    "lengths",
    [[20], [19, 20], range(1, 21), [1, 8, 20], [7, 20], [20, 9], [20, 1, 19]],
    ids=["prefill", "one more", "one by one", "split", "half", "undo", "and again"],
)
def test_the_way_to_a_prefix_does_not_show(model, close, lengths):
    for length in lengths:
        logits = model.logits(IDS[:length])
    close(logits, whole(model, IDS[: lengths[-1]]))


def test_another_way_on_sees_nothing_of_the_first(model, close):
    ways = [IDS, [*IDS[:9], 1], [*IDS[:9], 1, 2, 3], IDS[:3], [4], IDS[:12]]
    expected = [whole(model, way) for way in ways]
    model.reset()
    for way, logits in zip(ways, expected, strict=True):
        close(model.logits(way), logits)
    for way, logits in zip(ways, expected, strict=True):
        model.reset()
        close(model.logits(way), logits)


def test_no_walk_over_prefixes_shows(model, close):
    dice = random.Random(5)
    walk = [dice.choices(PROMPT, k=dice.randint(1, 9)) for _ in range(25)]
    found = [model.logits(ids) for ids in walk]
    for ids, logits in zip(walk, found, strict=True):
        close(logits, whole(model, ids))


@pytest.mark.parametrize(
    "rows",
    [
        [IDS[:3], IDS[:11], IDS[5:6]],
        [IDS[:9], [*IDS[:8], 1], IDS[4:13]],
        [[*IDS[:9], 1], [*IDS[:8], 1, 1]],
    ],
    ids=["of any length", "of one length", "that share much"],
)
def test_a_batch_equals_its_rows(model, close, rows):
    expected = torch.stack([whole(model, row) for row in rows])
    model.reset()
    close(model.logits_batch(rows), expected)


def test_asking_again_runs_no_forward_pass(model):
    first = generate(model, PROMPT, SAMPLED, max_new_tokens=5)
    passes = model.forward_passes
    assert generate(model, PROMPT, SAMPLED, max_new_tokens=5) == first
    for params in (GREEDY, SamplingParams(temperature=0.1, top_p=0.5, seed=3)):
        next(stream(model, PROMPT, params))
    assert first.steps[-1].ledger().raw_probs.isfinite().all()
    assert model.forward_passes == passes


@pytest.mark.parametrize("any_name", [n for n in MODELS if n not in UNCACHED])
def test_one_more_token_is_one_token_of_work(model):
    def work(ids):
        with FlopCounterMode(display=False) as counter:
            model.logits(ids)
        return counter.get_total_flops()

    def work_of_one_more(length):
        model.reset()
        alone = work(IDS[:length])
        model.reset()
        model.logits(IDS[: length - 1])
        return alone, work(IDS[:length])

    alone, one_more = work_of_one_more(6)
    longer_alone, longer_one_more = work_of_one_more(20)
    assert work(IDS[:19]) == 0  # it is remembered
    assert 0 < one_more <= longer_one_more < longer_alone
    assert longer_one_more - one_more < (longer_alone - alone) / 4


class Interrupt(TorchDispatchMode):
    """Count torch's operations, and raise KeyboardInterrupt at one of them."""

    def __init__(self, at=None):
        super().__init__()
        self.count, self.at = 0, at

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # noqa: D105
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8, 0.95])
def test_an_interrupt_inside_a_forward_pass_leaves_no_trace(model, close, share):
    model.logits(IDS[:6])
    with Interrupt() as operations:
        model.logits(IDS[:9])
    model.reset()
    model.logits(IDS[:6])
    with pytest.raises(KeyboardInterrupt), Interrupt(int(share * operations.count)):
        model.logits(IDS[:9])
    close(model.logits(IDS[:9]), whole(model, IDS[:9]))
    close(model.logits(IDS[:7]), whole(model, IDS[:7]))


@pytest.mark.parametrize(
    "options", [{"device": "abacus"}, {"device": "meta"}, {"dtype": "int8"}]
)
def test_unknown_places_are_refused(name, options):
    (option,) = options
    with pytest.raises(ParameterError, match=f"{option} must"):
        load(FORMATS[name].existing(), **options)


# State


def global_state():
    return {
        "random": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "threads": torch.get_num_threads(),
        "safe": set(torch.serialization.get_safe_globals()),  # in no order
        "verbosity": logging.get_verbosity(),
        "bars": logging.is_progress_bar_enabled(),
    }


def test_loading_and_generating_change_nothing_global(name):
    path = FORMATS[name].existing()
    with threads(3):
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
COMMANDS = [*((name, "sample") for name in FORMATS), ("xslm", "greedy")]


def files_beside(path):
    folder = path if path.is_dir() else path.parent
    files = [file.stat() for file in sorted(folder.rglob("*"))]
    return [(file.st_ino, file.st_mtime_ns, file.st_size) for file in files]


def command(name, mode):
    return [
        *("generate", "--checkpoint", str(FORMATS[name].path.relative_to(ROOT))),
        *("--token-ids", "7,13,29", "--device", "cpu", "--mode", mode),
        *("--max-new-tokens", "5", "--temperature", "1.5", "--top-k", "9"),
        *("--seed", "8"),
    ]


@pytest.mark.parametrize(("name", "mode"), COMMANDS)
def test_the_command_gives_what_the_library_call_gives(name, mode, capfd, monkeypatch):
    loaded = FORMATS[name].load()
    before = files_beside(FORMATS[name].path)
    monkeypatch.chdir(ROOT)
    assert main(command(name, mode)) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert files_beside(FORMATS[name].path) == before

    document = strict_json(out)
    params = GREEDY if mode == "greedy" else SAMPLED
    expected = generate(loaded, PROMPT, params, max_new_tokens=5)
    assert document["prompt_token_ids"] == PROMPT
    assert document["generated_token_ids"] == [*expected.token_ids]
    # Asked by ids, a Kimi K3 file loads no tokenizer, so it has no text to give.
    text = None if name == "kimi_k3" else expected.text
    assert document.get("generated_text") == text
    assert document["finish_reason"] == expected.finish_reason
    assert document["seed"] == (None if mode == "greedy" else 8)
    assert document["checkpoint"]["format"] == name
    assert document["checkpoint"]["sha256"] == loaded.card.digest  # taken at its end


def test_the_command_in_a_new_process_says_nothing_else(capfd, monkeypatch):
    """No notice of missing kernels, which the library gives at the first use."""
    arguments = command("kimi_k3", "sample")
    done = subprocess.run(
        [sys.executable, "-m", "sampling_lab", *arguments],
        capture_output=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    monkeypatch.chdir(ROOT)
    main(arguments)
    assert done.stdout.decode("utf-8") == capfd.readouterr().out
