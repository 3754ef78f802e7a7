"""Loading a Hugging Face directory: strict, safe, silent, and without a trace."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from sampling_lab import SamplingParams, generate, load
from sampling_lab.errors import CheckpointError
from sampling_lab.models.huggingface.quiet import quiet
from tests import tiny


@pytest.fixture
def directory(tmp_path):
    return tiny.save(tmp_path / "model")


def change_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_weights(directory, change):
    path = directory / "model.safetensors"
    state = load_file(path)
    change(state)
    save_file(state, path, metadata={"format": "pt"})


def test_missing_weights_are_listed(directory):
    change_weights(directory, lambda state: state.pop("model.norm.weight"))
    change_config(directory, num_hidden_layers=1)  # else it lacks weights altogether
    with pytest.raises(CheckpointError, match=r"missing: model\.norm\.weight") as error:
        load(directory)
    assert "unexpected: model.layers.1." in str(error.value)


def test_unexpected_weights_are_listed(directory):
    change_weights(directory, lambda state: state.update(extra=torch.ones(3)))
    with pytest.raises(CheckpointError, match="unexpected: extra"):
        load(directory)
    many = {f"extra{n:02}": torch.ones(3) for n in range(20)}
    change_weights(directory, lambda state: state.update(many))
    with pytest.raises(CheckpointError, match=r"extra04 and 15 more$"):
        load(directory)


def test_weights_of_another_size_are_listed(directory):
    change_config(directory, intermediate_size=40)
    with pytest.raises(CheckpointError, match="mismatched: ") as error:
        load(directory)
    wrong = "model.layers.1.mlp.down_proj.weight is [32, 48], not [32, 40]"
    assert wrong in str(error.value)


def test_a_head_that_is_tied_may_be_absent(tmp_path):
    directory = tiny.save(tmp_path, tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(directory / "model.safetensors")
    network = load(directory).network
    head, words = network.lm_head.weight, network.model.embed_tokens.weight
    assert head.data_ptr() == words.data_ptr()


def test_a_head_that_is_not_tied_may_not_be_absent(directory):
    def unhead(state):
        state["padding"] = state.pop("lm_head.weight").clone()

    change_weights(directory, unhead)
    with pytest.raises(CheckpointError, match=r"missing: lm_head\.weight"):
        load(directory)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": 10**9, "head_dim": 8},
        {"vocab_size": 10**12},
        {"intermediate_size": 10**10},
        {"num_hidden_layers": 10**6},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_configuration_that_asks_for_more_than_there_is(directory, changes):
    change_config(directory, **changes)
    with pytest.raises(CheckpointError, match=r"its configuration asks for [\d,]{7,} "):
        load(directory)


def test_a_directory_without_weights_says_what_it_holds(directory):
    (directory / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"neither .*; it holds .*config\.json"):
        load(directory)


def test_a_directory_without_a_configuration(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json") as error:
        load(tmp_path)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "cannot load"),
        ('{"model_type": "nonesuch"}', "nonesuch"),
        ('{"model_type": "t5"}', "an encoder-decoder"),
        ("[]", "cannot load"),
    ],
)
def test_a_configuration_that_is_not_one(directory, config, message):
    (directory / "config.json").write_text(config)
    with pytest.raises(CheckpointError, match=message) as error:
        load(directory)
    assert "\n" not in str(error.value)


def test_code_beside_the_weights_is_not_run(directory, tmp_path):
    marker = tmp_path / "ran"
    (directory / "modeling_evil.py").write_text(f"open({str(marker)!r}, 'w')\n")
    names = {
        "AutoConfig": "modeling_evil.Config",
        "AutoModelForCausalLM": "modeling_evil.Model",
    }
    change_config(directory, model_type="evil", auto_map=names)
    with pytest.raises(CheckpointError, match=r"custom code .* trust_remote_code=True"):
        load(directory)
    assert not marker.exists()


OWN_CODE = """
from transformers import LlamaConfig, LlamaForCausalLM

class SunnyConfig(LlamaConfig):
    model_type = "sunny"

class Sunny(LlamaForCausalLM):
    config_class = SunnyConfig
"""


def test_code_beside_the_weights_runs_when_it_is_trusted(
    directory, tmp_path, monkeypatch
):
    cache = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", cache)
    monkeypatch.syspath_prepend(cache)
    expected = load(directory).logits([5, 6])
    (directory / "modeling_sunny.py").write_text(OWN_CODE)
    names = {
        "AutoConfig": "modeling_sunny.SunnyConfig",
        "AutoModelForCausalLM": "modeling_sunny.Sunny",
    }
    change_config(directory, model_type="sunny", auto_map=names)
    with pytest.raises(CheckpointError, match=r"sunny|code"):
        load(directory)
    model = load(directory, trust_remote_code=True)
    assert model.card.details == {"architecture": "Sunny"}
    assert torch.equal(model.logits([5, 6]), expected)


def pickled(directory, state):
    """Put a ``pytorch_model.bin`` in place of the safetensors."""
    (directory / "model.safetensors").unlink()
    torch.save(state, directory / "pytorch_model.bin")


def test_pickled_weights_give_the_same_model(directory):
    expected = load(directory).logits([5, 6])
    defaults = {"do_sample": True, "temperature": 0.6}
    (directory / "generation_config.json").write_text(json.dumps(defaults))
    pickled(directory, load_file(directory / "model.safetensors"))
    model = load(directory)
    assert torch.equal(model.logits([5, 6]), expected)
    assert model.card.defaults == defaults


def test_pickled_weights_must_be_weights(directory):
    pickled(directory, {"model": {}, "step": 3})
    with pytest.raises(CheckpointError, match="holds 'model', a dict, among its wei"):
        load(directory)


def test_weights_in_several_files(directory):
    expected = load(directory).logits([5, 6])
    whole = directory / "model.safetensors"
    state = load_file(whole)
    whole.unlink()
    halves = {"a.safetensors": {}, "b.safetensors": {}}
    for place, name in enumerate(sorted(state)):
        halves[sorted(halves)[place % 2]][name] = state[name]
    for file, part in halves.items():
        save_file(part, directory / file, metadata={"format": "pt"})
    index = directory / "model.safetensors.index.json"
    weight_map = {name: file for file, part in halves.items() for name in part}
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    model = load(directory)
    assert torch.equal(model.logits([5, 6]), expected)
    assert [path.name for path in model.card.files[:2]] == sorted(halves)
    (directory / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"not beside it: b\.safetensors"):
        load(directory)


@pytest.mark.parametrize("index", ["[]", "{", '{"weight_map": {"a": "../x"}}', "{}"])
def test_a_broken_index_is_refused(directory, index):
    (directory / "model.safetensors").unlink()
    (directory / "model.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match="index"):
        load(directory)


def test_a_hub_name_without_a_network_is_one_sentence():
    with pytest.raises(CheckpointError, match="give a local directory") as error:
        load("nobody/nothing", local_files_only=True)
    assert "\n" not in str(error.value)


def test_what_the_hub_gave_before_loads_without_a_network(tmp_path, monkeypatch):
    cache = tmp_path / "hub" / "models--someone--sunny"
    tiny.save(cache / "snapshots" / "abc")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    model = load("someone/sunny", local_files_only=True)
    assert model.card.name == "someone/sunny"
    assert model.tokenizer is not None


def test_loading_and_generating_say_nothing_and_keep_the_verbosity(directory, capfd):
    logging.set_verbosity_info()
    try:
        model = load(directory, dtype="bfloat16")
        turns = [{"role": "user", "content": "hi"}]
        generate(model, turns, SamplingParams(seed=3), max_new_tokens=3)
        assert logging.get_verbosity() == logging.INFO
    finally:
        logging.set_verbosity_warning()
    assert torch.get_default_dtype() == torch.float32
    assert capfd.readouterr() == ("", "")


def test_quiet_restores_after_an_error(capfd):
    state, verbosity = torch.get_rng_state(), logging.get_verbosity()
    with pytest.raises(ValueError, match="inside"):
        with quiet():
            torch.set_default_dtype(torch.float64)
            torch.rand(3)
            logging.get_logger("transformers.x").warning("heard")
            raise ValueError("inside")
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(torch.get_rng_state(), state)
    assert logging.get_verbosity() == verbosity
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name",
    [
        "transformer.h.0.attn.bias",
        "transformer.h.0.attn.masked_bias",
        "transformer.h.0.attn.attention.bias",
        "transformer.h.0.attn.attention.masked_bias",
        "transformer.h.0.self_attention.rotary.inv_freq",
        "gpt_neox.layers.0.attention.bias",
    ],
)
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_constants_that_older_versions_saved_are_ignored(directory, name, kind):
    expected = load(directory).logits([5, 6])
    change_weights(directory, lambda state: state.update({name: torch.ones(1, 1)}))
    if kind == "bin":
        pickled(directory, load_file(directory / "model.safetensors"))
    torch.testing.assert_close(load(directory).logits([5, 6]), expected)
