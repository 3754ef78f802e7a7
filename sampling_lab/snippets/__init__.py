"""Settings as code to paste: for the lab, for other engines, for a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import ParameterError
from ..sampling.arguments import checked
from ..sampling.validation import rule_error
from . import python, shell
from .request import Request

if TYPE_CHECKING:
    from ..models.base import Prompt
    from ..sampling.params import SamplingParams

TARGETS: dict[str, Callable[[Request], str]] = {
    "sampling_lab": python.lab,
    "transformers": python.transformers,
    "vllm": python.vllm,
    "llama.cpp": shell.llama_cpp,
    "cli": shell.cli,
}
"""What writes the code for each target."""


@checked
def as_code(
    params: SamplingParams,
    target: str = "sampling_lab",
    *,
    prompt: Prompt = "Once upon a time",
    checkpoint: str = "checkpoints/xslm/model.json",
    max_new_tokens: int | None = 64,
    stop_token_ids: Sequence[int] | None = None,
) -> str:
    """Return code, ready to paste, that generates with these parameters.

    Where an engine cannot do what the parameters say, a comment in the code says so.

    Args:
        params: the parameters.
        target: "sampling_lab", "transformers" or "vllm" (Python), "llama.cpp" or
            "cli" (a command line).
        prompt: text, token ids or chat messages; a command line takes no messages,
            and llama.cpp's only text.
        checkpoint: a path or a hub name.
        max_new_tokens: how many tokens at most; None is each engine's own default.
        stop_token_ids: the ids that end a reply; None is the model's own.

    Raises:
        ParameterError: an unknown target, or a prompt that it cannot take.
    """
    if target not in TARGETS:
        known = ", ".join(map(repr, TARGETS))
        raise ParameterError(f"target must be one of {known}, got {target!r}")
    if not hasattr(prompt, "__len__") or isinstance(prompt, bytes):
        raise rule_error("prompt", "text, token ids or chat messages", prompt)
    if not len(prompt):
        raise ParameterError("prompt must not be empty to write code for it, got ''")
    ends = None if stop_token_ids is None else tuple(stop_token_ids)
    request = Request(
        params,
        prompt if isinstance(prompt, str) else list(prompt),  # type: ignore[arg-type]  # of one kind still
        str(checkpoint),
        max_new_tokens,
        ends,
    )
    return TARGETS[target](request)
