"""Command lines to paste: the lab's own and llama.cpp's."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ..errors import ParameterError
from ..sampling.parameters import PARAMETERS, PENALTIES, format_value
from .request import Request, given

_ALL_TOKENS = 32768
"""llama.cpp's penalties count the last so many tokens; this stands for all."""


def cli(request: Request) -> str:
    """Return a command line of the lab's own."""
    if request.is_chat:
        raise ParameterError(
            "prompt must be text or token ids for a command line, got messages; "
            "model.prompt_ids(messages) has the ids of a chat"
        )
    words: list[Any] = ["sampling-lab", "generate", "--checkpoint", request.checkpoint]
    if request.is_text:
        words += ["--prompt", request.prompt]
    else:
        words += ["--token-ids", ",".join(map(str, request.prompt))]
    for name, value in given(request.params):
        pairs = value.items() if name == "logit_bias" else value
        words += [f"--{name.replace('_', '-')}", format_value(name, pairs)]
    if request.max_new_tokens is not None:
        words += ["--max-new-tokens", request.max_new_tokens]
    ends, caveat = request.stop_token_ids, ""
    if ends is not None and len(ends) == 1:
        words += ["--eos-id", ends[0]]
    elif ends is not None:
        caveat = f"# --eos-id takes one id, and here are {len(ends)}: left out\n"
    return caveat + _shell([*words, "--text"])


def llama_cpp(request: Request) -> str:
    """Return a command line of llama.cpp's, for a GGUF file and plain text."""
    if not request.is_text:
        raise ParameterError(
            "prompt must be text for llama.cpp's command line, got token ids or "
            "messages; decode them first"
        )
    params, settings = request.params, request.settings("llama.cpp")
    words: list[Any] = ["llama-completion", "-no-cnv", "-m", request.checkpoint]
    words += ["-p", request.prompt]
    if request.max_new_tokens is not None:
        words += ["-n", request.max_new_tokens]
    # Its defaults are not neutral, so what is off is said too.
    values: dict[str, Any] = {"temperature": params.temperature}
    values |= {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | settings
    for token_id, bias in values.pop("logit_bias", ()):
        words += ["--logit-bias", f"{token_id}{bias:+}"]
    for token_id in values.pop("banned_token_ids", ()):
        words += ["--logit-bias", f"{token_id}-inf"]
    if "dry_multiplier" in values:  # it has breakers of its own
        words += ["--dry-sequence-breaker", "none"]
        values.pop("dry_sequence_breakers", None)
    if params.is_on("min_tokens_to_keep"):
        values["min_tokens_to_keep"] = params.min_tokens_to_keep
    if any(name in values for name in PENALTIES):
        values["penalty_window"] = params.penalty_window or _ALL_TOKENS
    for name, value in values.items():
        words += [PARAMETERS[name].name_in("llama.cpp"), value]
    if not params.is_greedy:
        words += ["--seed", -1 if params.seed is None else params.seed]
    return request.caveats("llama.cpp") + _shell(words)


def _shell(words: Sequence[Any]) -> str:
    return f"{shlex.join(map(str, words))}\n"
