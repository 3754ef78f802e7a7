"""The Hugging Face model: one answer however a prefix is reached, and its card."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    GenerationConfig,
    GPT2Config,
)
from transformers.cache_utils import DynamicLayer

from sampling_lab import SamplingParams, generate, load, stream
from sampling_lab.errors import CheckpointError, PromptError
from sampling_lab.models.huggingface.kv_cache import GrowingLayer
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests import tiny
from tests.formats import GPT2

IDS = [5, 9, 33, 2, 61, 7, 7, 12, 40, 3, 18, 50, 21, 6, 44, 31, 8, 29, 11, 60]


@pytest.fixture(scope="module")
def llama():
    return HuggingFaceModel.wrap(tiny.llama())


steps = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 5)), min_size=1, max_size=8
)


@settings(max_examples=40)
@given(steps=steps)
def test_the_growing_layer_is_the_librarys_layer(steps):
    ours, theirs = GrowingLayer(), DynamicLayer()
    generator = torch.Generator().manual_seed(0)
    for new, cut in steps:
        keys = torch.randn(1, 2, new, 4, generator=generator)
        values = torch.randn(1, 2, new, 3, generator=generator)
        for found, expected in zip(
            ours.update(keys, values), theirs.update(keys, values), strict=True
        ):
            assert torch.equal(found, expected)
        cut = min(cut, theirs.get_seq_length() - 1)
        ours.crop(-cut), theirs.crop(-cut)
        assert ours.get_seq_length() == theirs.get_seq_length()
        assert ours.get_mask_sizes(3) == theirs.get_mask_sizes(3)


def test_dropout_left_on_does_not_show_and_stays_on():
    config = GPT2Config(**GPT2, resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5)
    wrapped = AutoModelForCausalLM.from_config(config).train()
    wrapped.transformer.h[0].attn.eval()  # somebody froze one part
    before = [part.training for part in wrapped.modules()]
    model = HuggingFaceModel.wrap(wrapped)
    greedy = SamplingParams(temperature=0)
    texts = set()
    for _ in range(3):
        model.reset()
        texts.add(generate(model, IDS[:5], greedy, max_new_tokens=12).token_ids)
    assert len(texts) == 1
    assert [part.training for part in wrapped.modules()] == before
    assert any(before) and not all(before)


def test_the_card_of_a_model_in_memory():
    model = HuggingFaceModel.wrap(tiny.llama(300), tiny.byte_level(), name="mine")
    card = model.card
    assert (card.name, card.format, card.dialect) == (
        "mine",
        "huggingface",
        "transformers",
    )
    assert (card.vocab_size, card.context_length, card.chat) == (300, 64, True)
    assert (card.dtype, card.device, card.digest) == ("float32", "cpu", None)
    assert card.parameters == sum(p.numel() for p in model.network.parameters())
    assert card.bos_token_id == 0
    assert card.defaults == {}


def test_a_model_without_a_limit_has_none():
    config = BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4)
    model = HuggingFaceModel.wrap(AutoModelForCausalLM.from_config(config))
    assert model.card.context_length is None
    assert model.budget(10**6, 10**6) == 10**6


def test_a_run_stops_at_every_end_that_anybody_names():
    network = tiny.llama(300, eos_token_id=7)
    network.generation_config = GenerationConfig(eos_token_id=[5, 6, 999])
    model = HuggingFaceModel.wrap(network, tiny.byte_level())  # whose end is 2
    assert model.card.stop_token_ids == (2, 5, 6, 7)
    favourite = int(model.logits([9]).argmax())
    network.generation_config.eos_token_id = [favourite]
    model = HuggingFaceModel.wrap(network, tiny.byte_level())
    result = generate(model, [9], SamplingParams(temperature=0))
    assert (result.token_ids, result.text, result.finish_reason) == ((), "", "stop")
    assert result.stop_step.token_id == favourite


@pytest.mark.parametrize("length", [63, 64, 65, 100])
def test_a_prompt_that_does_not_fit_is_refused_with_both_lengths(llama, length):
    with pytest.raises(
        PromptError, match=rf"\({length} tokens\).*\(2\).*context of 64"
    ):
        stream(llama, [1] * length, max_new_tokens=2)


def test_a_prompt_that_just_fits_runs(llama):
    result = generate(llama, [1] * 62, max_new_tokens=2, stop_token_ids=())
    assert len(result.token_ids) == 2


def test_an_empty_prompt_needs_a_beginning_of_text():
    model = HuggingFaceModel.wrap(tiny.llama(300), tiny.byte_level())
    assert model.prompt_ids("") == [0]
    nameless = tiny.byte_level(bos_token=None)
    model = HuggingFaceModel.wrap(tiny.llama(300, bos_token_id=None), nameless)
    with pytest.raises(PromptError, match="no beginning-of-text token"):
        model.prompt_ids("")


def test_chat_needs_a_template(llama):
    turns = [{"role": "user", "content": "hi"}]
    with pytest.raises(PromptError, match="LlamaForCausalLM has no chat template"):
        llama.prompt_ids(turns)
    model = HuggingFaceModel.wrap(tiny.llama(300), tiny.byte_level())
    assert model.prompt_ids(turns)[0] == 1


def test_ids_beyond_the_tokenizer_are_shown_and_dropped_from_text():
    model = HuggingFaceModel.wrap(tiny.llama(310), tiny.byte_level())
    beyond = len(tiny.byte_level())
    assert model.card.vocab_size == 310 > beyond
    assert model.token_text(beyond) == f"⟨{beyond}⟩"
    hot = SamplingParams(temperature=100.0, seed=0)
    result = generate(model, [9], hot, max_new_tokens=50, stop_token_ids=())
    assert any(token_id >= beyond for token_id in result.token_ids)
    assert result.text == model.tokenizer.decode(result.token_ids)


def test_a_tokenizer_larger_than_the_model_is_refused():
    with pytest.raises(CheckpointError, match="tokens but LlamaForCausalLM knows 64"):
        HuggingFaceModel.wrap(tiny.llama(64), tiny.byte_level())


def test_padding_side_is_left_as_found():
    words = tiny.byte_level(padding_side="left")
    model = HuggingFaceModel.wrap(tiny.llama(300), words)
    for prompt in ("the", "the sun is warm and the sky"):
        generate(model, prompt, SamplingParams(seed=1), max_new_tokens=3)
    assert words.padding_side == "left"


def test_a_directory_loads_whole(tmp_path):
    directory = tiny.save(tmp_path / "sunny")
    model = load(directory)
    kept = HuggingFaceModel.wrap(tiny.llama(len(tiny.byte_level())))
    assert torch.equal(model.logits(IDS), kept.logits(IDS))
    assert model.card.name == "sunny"
    assert len(model.card.digest) == 64
    names = {path.name for path in model.card.files}
    assert names == {"model.safetensors", "config.json", "tokenizer.json"}
    assert model.tokenizer.decode(model.prompt_ids("the sun")) == "the sun"


def test_dtype_and_device_are_chosen(tmp_path):
    directory = tiny.save(tmp_path)
    assert load(directory, dtype="bfloat16").card.dtype == "bfloat16"
    assert load(directory, device="cpu").card.device == "cpu"


def test_half_precision_logits_give_finite_steps(tmp_path):
    model = load(tiny.save(tmp_path), dtype="bfloat16")
    assert model.logits([5]).dtype == torch.bfloat16
    result = generate(model, [5], SamplingParams(top_p=0.9, seed=1), max_new_tokens=4)
    assert all(0 < step.final_prob <= 1 for step in result.steps)


def test_another_tokenizer_can_be_given(tmp_path):
    directory = tiny.save(tmp_path / "model")
    tiny.byte_level(chat_template=None).save_pretrained(tmp_path / "words")
    for words in (tmp_path / "words", tiny.byte_level(chat_template=None)):
        model = load(directory, tokenizer=words)
        assert not model.card.chat


def test_a_directory_without_a_tokenizer_takes_ids(tmp_path):
    tiny.llama().save_pretrained(tmp_path)
    model = load(tmp_path)
    assert model.tokenizer is None
    assert generate(model, [5], max_new_tokens=2, stop_token_ids=()).text == ""
    with pytest.raises(PromptError, match="has no tokenizer"):
        model.prompt_ids("hello")
