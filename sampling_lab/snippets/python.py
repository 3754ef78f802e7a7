"""Python code to paste: for the lab itself, for transformers and for vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..sampling.parameters import PARAMETERS
from .request import Request, given

if TYPE_CHECKING:
    from ..sampling.params import SamplingParams

_LAB_LINES = """\
from sampling_lab import SamplingParams, generate, load

model = load({checkpoint!r})
params = SamplingParams({settings})
print(generate(model, {prompt!r}, params{options}).text)
"""

_TRANSFORMERS_LINES = """\
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

{caveats}tokenizer = AutoTokenizer.from_pretrained({source})
model = AutoModelForCausalLM.from_pretrained({source})
# The author's own sampling settings would be filled in; only where to end is kept.
eos_token_id = {eos}
model.generation_config = GenerationConfig(eos_token_id=eos_token_id)
{inputs}
{seed}output = model.generate(
    **inputs,
{settings}
)
new_ids = output[0, inputs["input_ids"].shape[1] :]
print(tokenizer.decode(new_ids, skip_special_tokens=True))
"""

_VLLM_LINES = """\
from vllm import LLM, SamplingParams

{caveats}llm = LLM({checkpoint!r})
params = SamplingParams(
{settings}
)
print(llm.{call}, params)[0].outputs[0].text)
"""


def lab(request: Request) -> str:
    """Return a call of the lab's own `generate`."""
    options = ""
    if request.max_new_tokens is not None:
        options += f", max_new_tokens={request.max_new_tokens}"
    if request.stop_token_ids is not None:
        options += f", stop_token_ids={list(request.stop_token_ids)}"
    return _LAB_LINES.format(
        checkpoint=request.checkpoint,
        settings=settings(request.params),
        prompt=request.prompt,
        options=options,
    )


def settings(params: SamplingParams) -> str:
    """Return the arguments of `SamplingParams` that differ from its defaults."""
    return ", ".join(f"{name}={value!r}" for name, value in given(params))


def transformers(request: Request) -> str:
    """Return a call of `model.generate` without defaults filled in by the model."""
    params, values = request.params, request.settings("transformers")
    arguments: dict[str, Any] = {"do_sample": not params.is_greedy}
    if not params.is_greedy:
        arguments |= {"temperature": params.temperature, "top_k": params.top_k or 0}
    bias = [([token_id], value) for token_id, value in values.pop("logit_bias", ())]
    bias += values.pop("sequence_bias", ())
    if bias:
        arguments["sequence_bias"] = [[list(ids), value] for ids, value in bias]
    if factor := values.pop("length_decay", None):
        decay = values.pop("length_decay_start", 0), factor
        arguments["exponential_decay_length_penalty"] = decay
    if banned := values.pop("banned_token_ids", None):
        arguments["suppress_tokens"] = list(banned)
    arguments |= {k: v for k, v in values.items() if k != "top_k"}
    if request.max_new_tokens is not None:
        arguments["max_new_tokens"] = request.max_new_tokens
    has_seed = not params.is_greedy and params.seed is not None
    ends = request.stop_token_ids
    return _TRANSFORMERS_LINES.format(
        caveats=request.caveats("transformers"),
        source=_source(request.checkpoint),
        eos="model.generation_config.eos_token_id" if ends is None else list(ends),
        inputs=_inputs(request),
        seed=f"torch.manual_seed({params.seed})\n" if has_seed else "",
        settings=_lines(arguments),
    )


def _source(checkpoint: str) -> str:
    """Return the arguments of `from_pretrained`; a GGUF file is named in its folder."""
    if not checkpoint.endswith(".gguf"):
        return repr(checkpoint)
    folder, _, name = checkpoint.rpartition("/")
    return f"{folder or '.'!r}, gguf_file={name!r}"


def _inputs(request: Request) -> str:
    if request.is_text:
        call = f"tokenizer({request.prompt!r}, "
        return f'inputs = {call}split_special_tokens=True, return_tensors="pt")'
    if request.is_chat:
        return (
            f"messages = {request.prompt!r}\n"
            "inputs = tokenizer.apply_chat_template(\n"
            "    messages, add_generation_prompt=True, return_dict=True, "
            'return_tensors="pt"\n)'
        )
    return (
        f"input_ids = torch.tensor([{request.prompt!r}])\n"
        'inputs = {"input_ids": input_ids, '
        '"attention_mask": torch.ones_like(input_ids)}'
    )


def vllm(request: Request) -> str:
    """Return a call of vLLM's `generate` or `chat`."""
    params, values = request.params, request.settings("vllm")
    arguments: dict[str, Any] = {"temperature": params.temperature}
    bias = dict(values.pop("logit_bias", ()))
    # It bans words, not ids; its largest bias does the same.
    bias |= dict.fromkeys(values.pop("banned_token_ids", ()), -100.0)
    arguments |= {PARAMETERS[k].name_in("vllm"): v for k, v in values.items()}
    if bias:
        arguments["logit_bias"] = bias
    if not params.is_greedy and params.seed is not None:
        arguments["seed"] = params.seed
    if request.max_new_tokens is not None:
        arguments["max_tokens"] = request.max_new_tokens
    if request.stop_token_ids is not None:
        arguments |= {
            "ignore_eos": True,
            "stop_token_ids": list(request.stop_token_ids),
        }
    return _VLLM_LINES.format(
        caveats=request.caveats("vllm"),
        checkpoint=request.checkpoint,
        settings=_lines(arguments),
        call=_vllm_call(request),
    )


def _vllm_call(request: Request) -> str:
    if request.is_chat:
        return f"chat({request.prompt!r}"
    if request.is_text:
        return f"generate({request.prompt!r}"
    return f"generate({{'prompt_token_ids': {request.prompt!r}}}"


def _lines(arguments: dict[str, Any]) -> str:
    return "\n".join(f"    {name}={value!r}," for name, value in arguments.items())
