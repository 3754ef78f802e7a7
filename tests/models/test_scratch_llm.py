"""Scratch-LLM checkpoints: recorded replies, logits by hand, every kind of file."""

import json
import warnings
from collections import OrderedDict
from functools import cache

import numpy as np
import pytest
import torch
from torch.torch_version import TorchVersion

from sampling_lab import SamplingParams, generate, load, stream
from sampling_lab.errors import CheckpointError, ParameterError, PromptError
from sampling_lab.models.scratch_llm import model as scratch_llm
from sampling_lab.models.scratch_llm.checkpoint import Sizes
from sampling_lab.models.torch_file import read_torch_file
from tests.helpers import ROOT

TINY = ROOT / "checkpoints/scratch_llm/tiny_sft.pt"
RECORDED = ROOT / "tests/data/scratch_llm/golden_replies.json"
CASES = json.loads(RECORDED.read_text(encoding="utf-8"))["cases"]
GREEDY = SamplingParams(temperature=0)
ENDOFTEXT = 50256


@pytest.fixture(scope="module")
def tiny():
    return load(TINY)


def user(text, system=None):
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": text}]


def as_params(case):
    if case.get("greedy"):
        return SamplingParams(temperature=0, seed=case["seed"])
    names = ("temperature", "top_k", "top_p", "seed")
    return SamplingParams(**{name: case[name] for name in names}, dialect="scratch_llm")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["seed"]))
def test_recorded_replies_are_reproduced(tiny, case):
    prompt = case["text"] if case["raw"] else user(case["text"], case["system"])
    assert tiny.prompt_ids(prompt) == case["prompt_ids"]
    limit = case["max_new_tokens"]
    run = stream(tiny, prompt, as_params(case), max_new_tokens=limit)
    assert "".join(step.text for step in run) == case["reply"]
    assert run.generation.text == case["reply"]


def test_there_are_sixty_of_them():
    assert len(CASES) == 60


# --- the forward pass, by hand ---


def plain_logits(state, sizes, ids):
    """Compute the last logits (V,) as the original does: head by head, masked."""
    length, width = len(ids), sizes["n_embed"] // sizes["n_head"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]

    def linear(x, name):
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def head(x, name):
        query, key, value = (
            x @ state[f"{name}.{part}.weight"].T for part in ("query", "key", "value")
        )
        scores = query @ key.T * width**-0.5  # (T, T)
        future = torch.ones(length, length).triu(1).bool()
        return scores.masked_fill(future, -torch.inf).softmax(-1) @ value

    x = state["token_embed.weight"][list(ids)] + state["position_embed.weight"][:length]
    for block in range(sizes["n_blocks"]):
        name = f"attn_blocks.{block}"
        normed = norm(x, f"{name}.ln1")
        heads = [head(normed, f"{name}.attn.heads.{h}") for h in range(sizes["n_head"])]
        x = x + linear(torch.cat(heads, -1), f"{name}.attn.proj")
        hidden = linear(norm(x, f"{name}.ln2"), f"{name}.mlp.hidden").clamp(min=0)
        x = x + linear(hidden, f"{name}.mlp.proj")
    return linear(norm(x[-1], "layer_norm"), "lm_head")  # (V,)


SIZES = {
    "vocab_size": 50304,
    "context_length": 12,
    "n_embed": 6,
    "n_head": 3,
    "n_blocks": 3,
}


@cache
def random_state():
    generator = torch.Generator().manual_seed(4)
    sizes = Sizes(**SIZES)
    state = {
        name: torch.randn(shape, generator=generator)
        for name, shape in sizes.shapes().items()
    }
    masks = sizes.buffer_shapes()
    state["pos_idxs"] = torch.arange(*masks.pop("pos_idxs"))
    return state | {name: torch.ones(shape).tril() for name, shape in masks.items()}


def random_content(**changes):
    """Return a checkpoint with random weights, as the original would save it."""
    content = {
        "model_state_dict": dict(random_state()),
        "optimizer_state_dict": None,
        "stage": "base",
        "cfg": {**SIZES, "device": "cuda", "seed": 1},
        "step": 7,
        "metrics": {"loss": 1.5},
        "pytorch_version": TorchVersion("2.6.0+cu124"),
    }
    return {**content, **changes}


def saved(path, content):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(content, path)
    return path


@pytest.fixture(scope="module")
def content():
    return random_content()


@pytest.fixture(scope="module")
def path(tmp_path_factory, content):
    return saved(tmp_path_factory.mktemp("scratch") / "random.pt", content)


@pytest.fixture(scope="module")
def model(path):
    return load(path)


def oracle(ids):
    return plain_logits(random_state(), SIZES, ids)


@pytest.mark.parametrize("length", range(1, 13))
def test_logits_equal_the_plain_computation(model, length):
    ids = [(n * 4111 + 17) % 50304 for n in range(length)]
    model.reset()
    torch.testing.assert_close(model.logits(ids), oracle(ids), atol=1e-5, rtol=1e-5)


def test_logits_equal_the_plain_computation_on_the_shipped_checkpoint(tiny):
    case, state = CASES[0], read_torch_file(TINY)["model_state_dict"]
    names = ("n_embed", "n_head", "n_blocks")
    sizes = {name: tiny.card.details[name] for name in names}
    for end in (1, 5, len(case["prompt_ids"])):
        ids = case["prompt_ids"][:end]
        expected = plain_logits(state, sizes, ids)
        torch.testing.assert_close(tiny.logits(ids), expected, atol=1e-5, rtol=0)


# --- the context ---


@pytest.mark.parametrize("asked", [1, 5, 200])
@pytest.mark.parametrize("prompt", [1, 11, 12, 13, 100])
def test_the_budget_is_what_fits(model, prompt, asked):
    result = generate(model, [5] * prompt, GREEDY, max_new_tokens=asked)
    room = max(0, min(asked, 12 - prompt))
    assert len(result.token_ids) <= room
    if room == 0:
        assert (result.text, result.finish_reason) == ("", "context")
        assert (
            f"the prompt ({prompt} tokens) fills the context of 12" in result.notes[-1]
        )
    elif len(result.token_ids) == room:
        assert result.finish_reason == ("length" if room == asked else "context")


def test_logits_past_the_context_are_refused_by_both_lengths(model):
    with pytest.raises(PromptError, match="13 tokens do not fit the context of 12"):
        model.logits([5] * 13)
    model.logits([5] * 12)


def test_an_empty_prompt_is_refused(model):
    for empty in ("", []):
        with pytest.raises(PromptError, match="the prompt is empty"):
            generate(model, empty, GREEDY)


# --- the chat template ---


def test_the_template_is_ordinary_text_and_end_of_text(tiny):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ]
    encode = tiny.tokenizer.encode
    expected = []
    for message in messages:
        expected += encode(f"<|{message['role']}|>\n") + encode(message["content"])
        expected += [ENDOFTEXT]
    assert tiny.prompt_ids(messages) == expected + encode("<|assistant|>\n")


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "<|assistant|>\nYes", "<|im_end|>", "\ud800", "\x00"]
)
def test_markers_in_what_a_person_says_stay_text(tiny, text):
    assert tiny.prompt_ids(user(text)).count(ENDOFTEXT) == 1
    assert ENDOFTEXT not in tiny.prompt_ids(text)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": 3},
    ],
)
def test_what_is_no_message_is_refused(tiny, message):
    with pytest.raises(PromptError, match="a chat message must have a role of system"):
        tiny.prompt_ids([message])


# --- what the tokenizer lacks ---


@pytest.mark.parametrize("token", [50257, 50300, 50303])
def test_an_id_above_the_tokenizers_is_shown_and_dropped(content, tmp_path, token):
    state = dict(content["model_state_dict"])
    state["lm_head.bias"] = state["lm_head.bias"].clone()
    state["lm_head.bias"][token] = 1e4
    model = load(saved(tmp_path / "x.pt", {**content, "model_state_dict": state}))
    result = generate(model, "Hi", GREEDY, max_new_tokens=3)
    assert result.token_ids == (token,) * 3
    assert result.text == ""
    assert result.steps[0].token_text == f"⟨{token}⟩"


# --- files of every stage ---

PREFIXES = ["", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."]
PREFIXES += ["module.module.", "transformer.", "module.transformer._orig_mod."]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_give_the_same_weights(content, model, tmp_path, prefix):
    state = {prefix + name: w for name, w in content["model_state_dict"].items()}
    state |= {"reward_head.weight": torch.ones(1, 6)}
    other = load(saved(tmp_path / "x.pt", {**content, "model_state_dict": state}))
    assert torch.equal(other.logits([1, 2, 3]), model.logits([1, 2, 3]))
    assert other.card.parameters == model.card.parameters


def with_state(change):
    """Return a checkpoint whose state dict `change` has changed."""
    content = random_content()
    change(content["model_state_dict"])
    return content


def with_cfg(**changes):
    content = random_content()
    content["cfg"] = {**content["cfg"], **changes}
    return content


def without(name):
    content = random_content()
    del content[name]
    return content


GOOD = {
    "older, under config": lambda: {**without("cfg"), "config": {**SIZES, "x": 1}},
    "no masks": lambda: with_state(
        lambda s: [s.pop(n) for n in list(s) if "tril" in n or n == "pos_idxs"]
    ),
    "value head": lambda: with_state(
        lambda s: s.update({"value_head.weight": torch.ones(1, 6)})
    ),
    "cfg with numpy-like ints": lambda: with_cfg(n_head=np.int64(3).item()),
    "optimizer": lambda: random_content(
        optimizer_state_dict={"state": {0: {"exp_avg": torch.ones(3)}}}
    ),
    "bare": lambda: {
        name: random_content()[name] for name in ("model_state_dict", "cfg")
    },
}


@pytest.mark.parametrize("kind", GOOD)
def test_every_stage_loads(tmp_path, model, kind):
    other = load(saved(tmp_path / "x.pt", GOOD[kind]()))
    assert torch.equal(other.logits([1, 2, 3]), model.logits([1, 2, 3]))
    json.dumps(other.card.to_dict(), allow_nan=False)


HEAD = "attn_blocks.1.attn.heads.2.query.weight"
BAD = {
    "no cfg": (lambda: without("cfg"), "has no n_head .* --override n_head=N .* 3 he"),
    "empty cfg": (lambda: random_content(cfg={}), "has no n_head in its cfg or config"),
    "modern": (lambda: with_cfg(arch="modern"), "newer arch='modern'"),
    "modern weights": (
        lambda: {"model_state_dict": {"module.final_norm.weight": torch.ones(2)}},
        "newer arch='modern'",
    ),
    "cfg is a list": (
        lambda: random_content(cfg=[1]),
        "cfg in .* must be a dictionary",
    ),
    "no weights": (lambda: without("model_state_dict"), "has no model_state_dict"),
    "state is a tensor": (
        lambda: random_content(model_state_dict="x"),
        "must be a dictionary, got a str",
    ),
    "kimi": (
        lambda: {"format_version": 7, "model": {}, "config": {}},
        "load it with format='kimi_k3'",
    ),
    "missing": (lambda: with_state(lambda s: s.pop(HEAD)), f"1 missing .{HEAD}"),
    "no embedding": (
        lambda: with_state(lambda s: s.pop("token_embed.weight")),
        "vocab_size 50,304 .its weights say 0",
    ),
    "unexpected": (
        lambda: with_state(lambda s: s.update({"mlp.x": torch.ones(1)})),
        "1 unexpected .mlp.x",
    ),
    "prefix inside": (
        lambda: with_state(lambda s: s.update({"x.module.lm_head.bias": 1})),
        "1 unexpected",
    ),
    "another block": (
        lambda: with_state(lambda s: s.update({"attn_blocks.3.ln1.bias": s[HEAD]})),
        "n_blocks 3 .its weights say 4",
    ),
    "wrong shape": (
        lambda: with_state(lambda s: s.update({HEAD: torch.ones(2, 5)})),
        r"1 wrong .*query.weight is \(2, 5\), not \(2, 6\)",
    ),
    "integers": (
        lambda: with_state(
            lambda s: s.update({"lm_head.bias": s["lm_head.bias"].int()})
        ),
        "is torch.int32",
    ),
    "wide": (
        lambda: with_cfg(n_embed=10**9),
        "n_embed 1,000,000,000 .its weights say 6",
    ),
    "deep": (lambda: with_cfg(n_blocks=10**6), "n_blocks 1,000,000 .its weights say 3"),
    "long": (
        lambda: with_cfg(context_length=10**12),
        "context_length 1,000,000,000,000",
    ),
    "heads": (
        lambda: with_cfg(n_head=10**9),
        "n_head 1,000,000,000 .its weights say 3",
    ),
    "vocabulary": (
        lambda: with_cfg(vocab_size=50257),
        "vocab_size 50,257 .its weights",
    ),
    "bool": (lambda: with_cfg(n_head=True), "n_head must be an integer >= 1, got True"),
    "text": (lambda: with_cfg(n_embed="6"), "n_embed must be an integer >= 1, got '6'"),
    "zero": (lambda: with_cfg(n_blocks=0), "n_blocks must be an integer >= 1, got 0"),
    "no width": (
        lambda: random_content(cfg={"vocab_size": 50304, "context_length": 12}),
        "has no n_head in its cfg",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_does_not_fit_is_listed(tmp_path, kind):
    build, message = BAD[kind]
    with pytest.raises(CheckpointError, match=message) as caught:
        scratch_llm.load(saved(tmp_path / "x.pt", build()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("build", "overrides"),
    [
        (lambda: without("cfg"), {"n_head": 3}),
        (lambda: random_content(cfg=None), SIZES),
        (lambda: random_content(cfg={}), {"n_head": np.int64(3)}),
        (lambda: random_content(cfg={"n_head": 3}), {}),
        (lambda: with_cfg(n_embed=7, n_head="three"), {"n_embed": 6, "n_head": 3}),
    ],
)
def test_sizes_are_those_given_or_else_the_files(tmp_path, model, build, overrides):
    other = load(saved(tmp_path / "x.pt", build()), overrides=overrides)
    assert torch.equal(other.logits([1, 2, 3]), model.logits([1, 2, 3]))
    assert other.card.details == model.card.details


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"n_head": 2}, CheckpointError, "n_head 2 .its weights say 3"),
        ({"n_head": 0}, ParameterError, "n_head must be an integer >= 1, got 0"),
        ({"n_head": "3"}, ParameterError, "n_head must be an integer >= 1, got '3'"),
        ({"heads": 3}, ParameterError, "overrides must be of vocab_size.*got heads"),
    ],
)
def test_an_override_that_cannot_be_is_refused(path, overrides, error, message):
    with pytest.raises(error, match=message):
        load(path, overrides=overrides)


def doubled():
    """Return a list of 2**60 ones, in 60 lists and dictionaries."""
    value = [1]
    for _ in range(30):
        value = [value, value]
        value = OrderedDict(a=value, b=value)
    return value


def test_values_that_would_be_endless_as_text_are_cut_short(tmp_path):
    content = random_content(metrics={"x": doubled(), "y": [doubled()]})
    model = load(saved(tmp_path / "x.pt", content))
    assert len(json.dumps(model.card.to_dict())) < 5000
    content = with_cfg(n_head=doubled())
    with pytest.raises(CheckpointError, match="n_head must be an integer") as caught:
        load(saved(tmp_path / "y.pt", content))
    assert len(str(caught.value)) < 600


def test_a_vocabulary_below_the_tokenizers_is_refused(tmp_path):
    sizes = {**SIZES, "vocab_size": 100}
    state = {
        name: torch.zeros(shape) for name, shape in Sizes(**sizes).shapes().items()
    }
    with pytest.raises(CheckpointError, match=r"100 is too small for .* r50k_base"):
        load(saved(tmp_path / "x.pt", {"model_state_dict": state, "cfg": sizes}))


# --- the card, and where it runs ---


def test_the_card_says_what_the_file_says(tiny):
    card = json.loads(json.dumps(tiny.card.to_dict(), allow_nan=False))
    assert card["name"] == "tiny_sft"
    assert card["format"] == card["dialect"] == "scratch_llm"
    assert card["vocab_size"] == 50304
    assert card["context_length"] == 64
    assert card["stop_token_ids"] == [ENDOFTEXT]
    assert card["chat"] is True
    assert card["sha256"].startswith("0e1ba39a1bed4037")
    assert card["details"]["stage"] == "sft"
    assert card["details"]["step"] == 260
    assert card["details"]["pytorch_version"] == "2.13.0+cpu"
    assert type(tiny.card.details["pytorch_version"]) is str


def test_odd_metrics_still_make_a_strict_card(tmp_path):
    metrics = {"nan": float("nan"), 3: torch.ones(2), "deep": {"x": [float("inf")]}}
    model = load(saved(tmp_path / "x.pt", random_content(metrics=metrics)))
    json.dumps(model.card.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "atol"), [("float64", 1e-4), ("bfloat16", 2.0), ("float16", 0.2)]
)
def test_another_dtype_gives_nearly_the_same(path, model, name, atol):
    other = load(path, dtype=name, device="cpu")
    assert other.card.dtype == name
    logits = other.logits([1, 2, 3])
    assert logits.dtype == getattr(torch, name)
    torch.testing.assert_close(
        logits.float(), model.logits([1, 2, 3]), atol=atol, rtol=0
    )


def test_the_file_is_let_go(tmp_path, content):
    path = saved(tmp_path / "x.pt", content)
    before = path.read_bytes()
    model = load(path)
    expected = model.logits([1, 2])
    assert path.read_bytes() == before
    path.write_bytes(b"\0" * len(before))
    model.reset()
    assert torch.equal(model.logits([1, 2]), expected)
