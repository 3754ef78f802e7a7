"""Kimi K3 checkpoints: strict loading, exact prefix reuse, and the shipped one."""

import copy
import json
import math
import random
import shutil

import numpy as np
import pytest
import torch
from transformers import KimiLinearForCausalLM, PreTrainedTokenizerFast

from sampling_lab import SamplingParams, generate, load
from sampling_lab.errors import (
    CheckpointError,
    MissingPackageError,
    ParameterError,
    PromptError,
)
from sampling_lab.models.formats import detect
from sampling_lab.models.huggingface.quiet import quiet
from sampling_lab.models.kimi_k3 import model as kimi_k3
from sampling_lab.models.kimi_k3.config import read_config
from sampling_lab.models.torch_file import read_torch_file
from tests.formats import threads
from tests.helpers import ROOT
from tools import train_kimi_k3
from tools.train_kimi_k3 import PAIRS

FOLDER = ROOT / "checkpoints" / "kimi_k3"
SHIPPED = FOLDER / "last.pt"
SCRATCH = ROOT / "checkpoints" / "scratch_llm" / "tiny_sft.pt"
GREEDY = SamplingParams(temperature=0)
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
LENGTHS = [1, 15, 16, 17, 40, 63, 64, 65]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny tensors gain nothing from more, and a busy machine loses much."""
    with threads(1):
        yield


@pytest.fixture(scope="module")
def model():
    return load(SHIPPED, device="cpu")


@pytest.fixture(scope="module")
def ids():
    generator = torch.Generator().manual_seed(7)
    return torch.randint(128, (66,), generator=generator).tolist()


@pytest.fixture(scope="module")
def whole(model, ids):
    """Logits after every prefix, from one forward pass without a cache."""
    with torch.inference_mode():
        return model.network(input_ids=torch.tensor([ids])).logits[0]  # (T, V)


@pytest.fixture
def content():
    """Return what the shipped file holds, to be changed and saved again."""
    return copy.deepcopy(read_torch_file(SHIPPED))


@pytest.fixture
def saved(tmp_path, content):
    """Return a function that saves `content`, with entries changed, and its path."""

    def save(**entries):
        torch.save({**content, **entries}, tmp_path / "k3.pt")
        return tmp_path / "k3.pt"

    return save


# The shipped checkpoint


def test_card(model):
    card = model.card
    assert (card.format, card.name, card.dialect) == (
        "kimi_k3",
        "kimi_k3/last",
        "transformers",
    )
    assert (card.vocab_size, card.context_length, card.dtype) == (128, 256, "float32")
    assert card.stop_token_ids == (0,) and card.bos_token_id is None
    assert card.details["layers"] == "3 KDA, 1 MLA"
    assert card.details["experts"] == "2 of 4 in 3 layers"
    assert card.parameters == sum(
        weight.numel() for weight in model.network.parameters()
    )
    json.dumps(card.to_dict(), allow_nan=False)
    assert SHIPPED.stat().st_size < 600_000


@pytest.mark.parametrize(("question", "answer"), PAIRS)
def test_it_answers_its_training_questions(model, question, answer):
    result = generate(model, f"Q: {question}\nA: ", GREEDY)
    assert (result.text, result.finish_reason) == (answer, "stop")


def test_raw_ids_make_readable_text(model):
    result = generate(model, [7, 13, 29], GREEDY)
    assert list(result.prompt_ids) == [7, 13, 29]  # nothing is put before them
    assert result.text == " sun is warm."


def test_its_tokenizer_spells_ascii_and_marks_the_rest(model):
    text = train_kimi_k3.CHARACTERS
    encoded = model.tokenizer.encode(text)
    assert model.tokenizer.decode(encoded) == text
    assert model.tokenizer.token_text(model.tokenizer.encode("é")[0]) == "<|unknown|>"


def test_sampling_is_torch_multinomial_with_a_cpu_seed(model):
    prompt = model.prompt_ids("Q: what is hot?\nA: ")
    params = SamplingParams(temperature=1.6, top_k=30, seed=5)
    result = generate(model, prompt, params, max_new_tokens=12, stop_token_ids=())
    generator = torch.Generator().manual_seed(5)
    expected = []
    for _ in range(12):
        with torch.inference_mode():
            rows = model.network(input_ids=torch.tensor([prompt + expected])).logits
        logits = rows[0, -1] / 1.6
        logits[logits < logits.topk(30).values[-1]] = -math.inf
        probs = logits.softmax(-1)
        expected.append(torch.multinomial(probs, 1, generator=generator).item())
    assert list(result.token_ids) == expected


# Prefix reuse at the edges of KDA's chunks; the rest is in `test_formats`


def close(logits, expected):
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_prefill_and_one_more_token(model, ids, whole, length):
    model.reset()
    close(model.logits(ids[:length]), whole[length - 1])
    close(model.logits(ids[: length + 1]), whole[length])


def test_token_by_token(model, ids, whole):
    model.reset()
    for length in range(1, len(ids) + 1):
        close(model.logits(ids[:length]), whole[length - 1])


def test_a_long_prompt_is_read_in_blocks(model, ids, whole, monkeypatch):
    monkeypatch.setattr(kimi_k3, "_PREFILL_BLOCK", 8)
    model.reset()
    close(model.logits(ids), whole[-1])


def test_train_mode_changes_nothing_and_is_left_alone(saved, content, ids):
    config = {**content["config"], "attention_dropout": 0.5}
    model = load(saved(config=config), device="cpu")
    expected = model.logits(ids)
    model.network.train()
    model.reset()
    assert torch.equal(model.logits(ids), expected)
    assert model.network.training


def test_network_is_the_librarys_with_its_plain_kernels(model, content, whole, ids):
    config = read_config(content["config"], content["model"])
    with quiet():
        original = KimiLinearForCausalLM(config).eval()
        original.load_state_dict(
            {**content["model"], HEAD: content["model"][EMBEDDING]}
        )
        with torch.inference_mode():
            logits = original(input_ids=torch.tensor([ids])).logits[0]
    assert torch.equal(logits, whole)


# Context


def test_prompt_and_new_tokens_must_fit(model):
    assert len(generate(model, [7] * 255, GREEDY, max_new_tokens=1).steps) == 1
    for length, new in [(250, 7), (256, 1), (300, 1)]:
        with pytest.raises(PromptError, match=rf"{length} tokens.*\({new}\).*256"):
            generate(model, [7] * length, GREEDY, max_new_tokens=new)
    with pytest.raises(PromptError, match="257 tokens do not fit the context of 256"):
        model.logits([7] * 257)


@pytest.mark.parametrize(
    ("given", "length"),
    [({"max_seq_len": 100, "max_position_embeddings": 5}, 100), ({}, 77)],
)
def test_context_is_max_seq_len_or_the_librarys_name(content, given, length):
    config = {**content["config"], "model_max_length": 77}
    del config["max_seq_len"]
    read = read_config({**config, **given}, content["model"])
    assert read.max_position_embeddings == length


# The file


@pytest.mark.parametrize("version", [6, 8, "7", True, 7.0, None, [7]])
def test_another_format_version_is_refused(saved, version):
    with pytest.raises(CheckpointError, match="format_version must be the integer 7"):
        load(saved(format_version=version))


def test_a_missing_format_version_is_named(saved, content):
    del content["format_version"]
    path = saved()
    assert detect(path) == "kimi_k3"
    with pytest.raises(CheckpointError, match=r"no format_version.*it holds config"):
        load(path)


@pytest.mark.parametrize("config", ["config", "model_config", "model_cfg"])
@pytest.mark.parametrize("state", ["model", "model_state", "model_state_dict"])
def test_names_of_the_two_entries(saved, content, config, state, model):
    entries = {config: content.pop("config"), state: content.pop("model")}
    loaded = load(saved(**entries, optimizer={"lr": 1.0}), device="cpu")
    assert loaded.card.details["not used"] == ["optimizer"]
    assert torch.equal(loaded.logits([5, 6]), model.logits([5, 6]))


def test_the_trainers_own_config_yields_to_the_models(saved, content):
    trainer = {"lr": 1.0}
    assert load(saved(model_config=content["config"], config=trainer)).card.vocab_size


@pytest.mark.parametrize("entry", ["config", "model"])
def test_a_missing_or_odd_entry_is_named(saved, content, entry):
    with pytest.raises(CheckpointError, match=f"{entry} in .* dictionary, got a list"):
        load(saved(**{entry: [1]}))
    del content[entry]
    with pytest.raises(CheckpointError, match=f"has no model_.*or {entry}; it holds"):
        load(saved(), format="kimi_k3")


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.module.", "module.module."])
def test_prefixes_of_wrappers_are_stripped(saved, content, prefix, model):
    state = {prefix + name: tensor for name, tensor in content["model"].items()}
    loaded = load(saved(model=state), device="cpu")
    assert torch.equal(loaded.logits([5, 6]), model.logits([5, 6]))


def test_missing_unexpected_and_misshapen_weights_are_listed(saved, content):
    state = content["model"]
    del state["model.norm.weight"]
    state["value_head.weight"] = torch.ones(1)
    state["model.layers.0.mlp.up_proj.weight"] = torch.ones(3, 3)
    message = (
        r"1 missing \(model\.norm\.weight\); 1 unexpected \(value_head\.weight\); "
        r"1 wrong \(model\.layers\.0\.mlp\.up_proj\.weight is \(3, 3\), not \(64, 32\)"
    )
    with pytest.raises(CheckpointError, match=message):
        load(saved())


def test_bfloat16_weights_load_as_float32(saved, content):
    state = {name: t.to(torch.bfloat16) for name, t in content["model"].items()}
    loaded = load(saved(model=state), device="cpu")
    assert loaded.card.dtype == "float32"
    assert loaded.logits([5, 6]).dtype == torch.float32


def test_a_tied_head_is_the_embedding_again(model, saved, content):
    for loaded in (model, load(saved(model=with_head(content)))):
        network = loaded.network
        assert network.lm_head.weight is network.model.embed_tokens.weight


def test_a_tied_head_that_differs_is_refused(saved, content):
    state = with_head(content) | {HEAD: content["model"][EMBEDDING] + 1}
    with pytest.raises(CheckpointError, match="tie_word_embeddings is true, but lm_h"):
        load(saved(model=state))


def test_an_untied_head_must_be_there_and_stays_apart(saved, content):
    untied = {**content["config"], "tie_word_embeddings": False}
    with pytest.raises(CheckpointError, match=r"1 missing \(lm_head\.weight\)"):
        load(saved(config=untied))
    network = load(saved(config=untied, model=with_head(content))).network
    weights = (network.lm_head.weight, network.model.embed_tokens.weight)
    assert weights[0].data_ptr() != weights[1].data_ptr()


def with_head(content):
    return {**content["model"], HEAD: content["model"][EMBEDDING].clone()}


# The configuration


@pytest.mark.parametrize("layers", [10**6, 3, 10**30, "4", None])
def test_layers_are_counted_before_any_is_built(saved, content, layers, monkeypatch):
    monkeypatch.setattr(kimi_k3, "build", lambda *_: pytest.fail("it was built"))
    config = {**content["config"], "num_hidden_layers": layers}
    problem = f"num_hidden_layers is {layers!r}, but the weights are those of 4 layers"
    with pytest.raises(CheckpointError, match=problem):
        load(saved(config=config))


@pytest.mark.parametrize(
    "claim",
    [
        {"hidden_size": 10**9},
        {"vocab_size": 10**12},
        {"hidden_size": 10**9, "vocab_size": 10**12},
        {"intermediate_size": 10**30},
        {"num_local_experts": 10**8},
        {"linear_head_dim": 10**7, "linear_num_heads": 10**7},
        {"linear_conv_kernel_dim": 10**9},
        {"kv_lora_rank": 10**9},
    ],
)
def test_huge_sizes_are_refused_before_memory_is_taken(saved, content, claim):
    config = content["config"] | claim
    problem = "weights its configuration asks for|no network can be built"
    with pytest.raises(CheckpointError, match=problem):
        load(saved(config=config))


FOUR = ["linear_attention"] * 4


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n_embed": 3}, "does not know: n_embed"),
        ({"model_type": "llama"}, "model_type must be 'kimi_linear', got 'llama'"),
        ({"chunk_size": 32}, "chunk_size must be 64, got 32"),
        ({"hidden_size": "32"}, "hidden_size.*expected int"),
        ({"hidden_size": True}, "hidden_size.*expected int"),
        ({"hidden_size": -32}, "hidden_size must be an integer >= 1, got -32"),
        ({"n_group": 0}, "n_group must be an integer >= 1, got 0"),
        ({"max_seq_len": 0}, "max_position_embeddings must be an integer >= 1, got 0"),
        ({"layer_types": FOUR}, "layer_types must hold only linear_attention and full"),
        ({"layer_types": ["sliding_attention"] * 4}, "layer_types must hold only"),
        ({"layer_types": FOUR[:3]}, "must be equal to the number of `layer_types`"),
        ({"mlp_layer_types": ["moe"] * 4}, "mlp_layer_types"),
        ({"num_key_value_heads": 1}, "num_key_value_heads must equal num_attention"),
        ({"n_group": 3}, "n_group must split num_local_experts"),
        ({"n_group": 4}, "n_group must split num_local_experts"),
        ({"topk_group": 2}, "topk_group must be at most n_group, got 2"),
        ({"num_experts_per_tok": 5}, "num_experts_per_tok must be at most .* got 5"),
        ({"hidden_act": "sprint"}, "hidden_act must be an activation.*'sprint'"),
        ({"linear_attn_config": 3}, "the configuration is refused"),
        ({"linear_attn_config": {"x": 3}}, "linear_attn_config has settings .* x"),
    ],
)
def test_a_bad_setting_is_named(content, change, problem):
    with pytest.raises(CheckpointError, match=problem) as error:
        read_config({**content["config"], **change}, content["model"])
    assert "\n" not in str(error.value)


def test_what_the_library_writes_itself_is_accepted(content):
    names = content["model"]
    config = read_config(content["config"], names)
    assert read_config(config.to_dict(), names).to_dict() == config.to_dict()


def test_names_of_the_published_configurations_are_accepted(content):
    config = content["config"]
    for name in ("linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim"):
        del config[name]
    del config["layer_types"], config["mlp_layer_types"], config["num_local_experts"]
    config |= {
        "linear_attn_config": {
            "head_dim": 16,
            "num_heads": 2,
            "short_conv_kernel_size": 4,
            "kda_layers": [1, 2, 3],
            "full_attn_layers": [4],
        },
        "first_k_dense_replace": 1,
        "num_experts": 4,
    }
    read = read_config(config, content["model"])
    assert read.layer_types == [*["linear_attention"] * 3, "full_attention"]
    assert (read.num_local_experts, read.linear_head_dim) == (4, 16)


# Options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"backend": "fused"},
            "backend fused needs a CUDA device, and the device is c",
        ),
        ({"backend": "quick"}, "backend must be reference or fused, got 'quick'"),
        ({"dtype": "bfloat16"}, r"\(--precision bf16\) needs CUDA hardware"),
        ({"dtype": "float16"}, "dtype must be auto, float32 or bfloat16"),
        ({"dtype": "half"}, "dtype must be auto or"),
    ],
)
def test_what_this_machine_cannot_give_is_refused(options, problem):
    with pytest.raises(ParameterError, match=problem):
        load(SHIPPED, **{"device": "cpu", **options})


def test_fused_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(kimi_k3, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install flash-linear-attention"):
        kimi_k3.check_backend("fused", torch.device("cuda"))


def test_raw_ids_need_no_tokenizer(tmp_path, model):
    shutil.copy(SHIPPED, tmp_path)
    raw = load(tmp_path / "last.pt", device="cpu")
    assert raw.tokenizer is None and raw.card.stop_token_ids == (0,)
    expected = generate(model, [7, 13, 29], GREEDY)
    assert generate(raw, [7, 13, 29], GREEDY).token_ids == expected.token_ids
    with pytest.raises(PromptError, match="has no tokenizer; give token ids"):
        generate(raw, "Q: hi\nA: ", GREEDY)


def test_a_tokenizer_from_elsewhere(tmp_path, model):
    shutil.copy(SHIPPED, tmp_path)
    named = load(tmp_path / "last.pt", tokenizer=str(FOLDER), local_files_only=True)
    assert named.tokenizer.encode("Q: hi") == model.tokenizer.encode("Q: hi")


def test_a_tokenizer_of_another_length_is_refused(tmp_path):
    with quiet():
        tokenizer = PreTrainedTokenizerFast.from_pretrained(FOLDER)
        tokenizer.add_tokens(["warm"])
        tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"has 129 tokens.*is 128"):
        load(SHIPPED, tokenizer=tmp_path)


def test_a_mistyped_tokenizer_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="no tokenizer could be read from"):
        load(SHIPPED, tokenizer=str(tmp_path / "mistyped"))


# Training


def test_training_begins_at_chance_and_learns():
    losses = []
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    train_kimi_k3.train_checkpoint(
        PAIRS[:2], steps=8, on_step=lambda step, loss: losses.append(loss)
    )
    vocabulary = len(train_kimi_k3.learn_tokenizer(PAIRS[:2]).get_vocab())
    assert losses[0] == pytest.approx(math.log(vocabulary), abs=0.1)
    assert losses[-1] < losses[0] - 0.5
    assert random.getstate() == states[0]
    assert str(np.random.get_state()) == str(states[1])
    assert torch.equal(torch.get_rng_state(), states[2])


def test_the_shipped_files_are_those_of_the_command(content, tmp_path):
    config = {**train_kimi_k3.CONFIG, "vocab_size": 128}
    assert content["config"] == config
    assert content["step"] == train_kimi_k3.STEPS
    tokenizer = train_kimi_k3.learn_tokenizer(PAIRS)
    train_kimi_k3.write_checkpoint({}, tokenizer, tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()
