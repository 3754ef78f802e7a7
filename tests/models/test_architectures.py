"""Every causal architecture that `transformers` knows, however a prefix is reached."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoModelForCausalLM, Phi3Config, PreTrainedModel

from sampling_lab import SamplingParams, generate
from sampling_lab.errors import CheckpointError
from sampling_lab.models.huggingface.kinds import check_causal
from sampling_lab.models.huggingface.model import HuggingFaceModel
from tests import architectures, tiny

IDS = [5, 9, 33, 2, 41, 7, 7, 12, 40, 3, 18, 50]
REFUSED = {
    **dict.fromkeys(
        "camembert data2vec-text roberta roberta-prelayernorm xlm-roberta "
        "xlm-roberta-xl xmod".split(),
        r"counts its positions from 0 and its forward pass from pad_token_id \+ 1",
    ),
    **dict.fromkeys(
        ("cpmant", "dory", "moshi", "prophetnet"), "its cached steps differ"
    ),
    **dict.fromkeys(("xlm", "xlnet"), "reads tokens ahead"),
}
"""model_type -> what is said instead of running it."""

UNBUILT = {
    "blt": "its own cache asks for a size that its configuration lacks",
    "cohere_compass_text": "its default configuration lacks a rotary setting",
    "dbrx": "its default configuration lacks a rotary setting",
    "dots3_note": "its default configuration names layers by their number",
    "dots3_note_text": "its default configuration names layers by their number",
    "gemma3n": "it needs timm",
    "gemma4_assistant": "its default configuration is not one it accepts",
    "gemma4_unified_assistant": "it drafts for another model, whose states it needs",
    "musicgen": "its own configuration is not one its causal form accepts",
    "musicgen_melody": "its own configuration is not one its causal form accepts",
    "qwen4_exp": "its default configuration lacks a size",
    "qwen4_exp_text": "its default configuration lacks a size",
    "zamba2": "its layers cannot be shrunk to four",
}
"""model_type -> why no tiny model of it can be made here."""

RUN = [n for n in architectures.NAMES if n not in REFUSED and n not in UNBUILT]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def whole(network: PreTrainedModel, ids: list[int]) -> Tensor:
    """Return the logits after ids, shape (V,), in one pass without a cache."""
    with torch.inference_mode():
        return network(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]


def library_text(network: PreTrainedModel, ids: list[int], count: int) -> list[int]:
    """Return `count` greedy ids from the library's own `generate`."""
    input_ids = torch.tensor([ids])
    made = network.generate(
        input_ids,
        attention_mask=torch.ones_like(input_ids),
        do_sample=False,
        max_new_tokens=count,
        min_new_tokens=count,
        eos_token_id=None,
        pad_token_id=0,
    )
    return made[0, len(ids) :].tolist()


def check(model: HuggingFaceModel, network: PreTrainedModel) -> None:
    """Compare every way to a prefix with one pass over it, and with `generate`."""

    def same(ids: list[int], found: Tensor | None = None) -> None:
        found = model.logits(ids) if found is None else found
        expected = whole(network, ids)
        room = 1e-4 * max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(found, expected, atol=room, rtol=0)

    for length in range(6, len(IDS) + 1, 2):  # cached
        same(IDS[:length])
    same([*IDS[:8], 20])  # forked
    same([*IDS[:8], 20, 21, 22])
    for row in (rows := [[*IDS[:6], n] for n in (1, 2, 3)]):
        same(row, model.logits_batch(rows)[rows.index(row)])
    longer = [[*row, 8] for row in reversed(rows)]
    for row, found in zip(longer, model.logits_batch(longer), strict=True):
        same(row, found)
    same([33, 1, 4, *IDS])  # jumped to
    same([33, 1, 4, *IDS, 4])
    model.reset()
    same([7])
    same([7, 8])
    model.reset()
    assert greedy_ids(model, IDS[:6], 10) == library_text(network, IDS[:6], 10)


@pytest.mark.filterwarnings("ignore")  # of the library, about missing fast kernels
@pytest.mark.parametrize("model_type", RUN)
def test_an_architecture_gives_one_answer(model_type):
    network = architectures.build(model_type)
    check(HuggingFaceModel.wrap(copy.deepcopy(network)), network)


@pytest.mark.parametrize("model_type", REFUSED)
def test_an_architecture_that_has_two_answers_is_refused(model_type):
    network = architectures.build(model_type)
    with pytest.raises(CheckpointError, match=REFUSED[model_type]):
        HuggingFaceModel.wrap(network)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", UNBUILT)
def test_what_cannot_be_built_still_cannot(model_type):
    with pytest.raises(Exception, match=r"."):
        whole(architectures.build(model_type), IDS)


def test_there_are_enough_architectures():
    assert len(RUN) >= 165


def longrope() -> PreTrainedModel:
    """Return a Phi-3 whose rotary frequencies change after 32 tokens."""
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0, 2.0, 5.0, 9.0],
    }
    config = Phi3Config(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        original_max_position_embeddings=32,
        rope_parameters={**rope, "original_max_position_embeddings": 32},
        pad_token_id=0,
        initializer_range=0.4,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return AutoModelForCausalLM.from_config(config).eval()


GREEDY = SamplingParams(temperature=0)


def greedy_ids(model: HuggingFaceModel, ids: list[int], count: int) -> list[int]:
    """Return `count` greedy ids of the lab."""
    run = generate(model, ids, GREEDY, max_new_tokens=count, stop_token_ids=())
    return list(run.token_ids)


@pytest.mark.parametrize("length", [27, 28, 32, 33, 40])
def test_what_is_cached_is_dropped_where_rotary_frequencies_change(length):
    network = longrope()
    model = HuggingFaceModel.wrap(network)
    prompt = (IDS * 4)[:length]
    found = greedy_ids(model, prompt, 20)
    assert found == library_text(network, prompt, 20)
    for cut in (length, 32, 33):  # back below the change and over it again
        ids = [*prompt, *found][:cut]
        torch.testing.assert_close(
            model.logits(ids), whole(network, ids), atol=1e-4, rtol=0
        )
        rows = model.logits_batch([[*ids, 7], [*ids, 8]])
        expected = whole(network, [*ids, 8])
        torch.testing.assert_close(rows[1], expected, atol=1e-4, rtol=0)
    model.reset()
    assert greedy_ids(model, prompt, 20) == found


def test_a_compiled_model_is_cached_as_the_plain_one():
    plain = tiny.llama()
    with torch.compiler.set_stance("force_eager"):  # the wrapper is what counts
        compiled = HuggingFaceModel.wrap(torch.compile(plain, backend="eager"))
    seen = []
    hook = plain.model.embed_tokens.register_forward_hook(
        lambda module, given, output: seen.append(given[0].shape[-1])
    )
    with torch.compiler.set_stance("force_eager"):
        found = greedy_ids(compiled, IDS[:6], 5)
    hook.remove()
    assert seen == [6, 1, 1, 1, 1]
    assert found == greedy_ids(HuggingFaceModel.wrap(plain), IDS[:6], 5)
    assert compiled.card.details == {"architecture": "LlamaForCausalLM"}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("BertForMaskedLM", {}, r"a masked-language model \(BertForMaskedLM\)"),
        ("BertLMHeadModel", {}, "a masked-language model"),  # is_decoder is False
        ("T5ForConditionalGeneration", {}, "an encoder-decoder"),
        ("BartForConditionalGeneration", {}, "an encoder-decoder"),
        ("LlamaForSequenceClassification", {}, "a classifier"),
        ("GPT2ForTokenClassification", {}, "a classifier"),
        ("Qwen2VLForConditionalGeneration", {}, "a multimodal model"),
        ("CLIPModel", {}, "a multimodal model"),
        ("ViTModel", {}, "no language model"),
    ],
)
def test_what_is_no_causal_model_is_called_what_it_is(kind, options, message):
    config = getattr(transformers, kind).config_class(**options)
    for architectures_of in ([kind], None):
        config.architectures = architectures_of
        with pytest.raises(CheckpointError, match=message) as error:
            check_causal(config, kind)
        assert "the lab runs causal language models" in str(error.value)
        assert len(str(error.value)) < 200


def test_a_causal_model_that_says_it_is_no_decoder_runs():
    config = architectures.build("gpt_neox").config
    assert config.is_decoder is False
    check_causal(config, "GPTNeoXForCausalLM")
