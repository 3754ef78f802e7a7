"""Python code to paste for a text that was forked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ParameterError
from .python import settings

if TYPE_CHECKING:
    from ..generation.branches import Branch
    from ..models.base import Prompt

_HEAD = """\
from sampling_lab import SamplingParams, fork, generate, load

model = load({checkpoint!r})
params = SamplingParams({settings})
text = generate(model, {prompt!r}, params, max_new_tokens={count})
"""
_FORK = """\
params = SamplingParams({settings})
text = fork(
    model, text, {index}, {token_id}, params, max_new_tokens={count}
).to_the_end()
"""


def forked_code(path: Sequence[Branch], prompt: Prompt, checkpoint: str) -> str:
    """Return code that generates a text and takes the same other tokens in it.

    Args:
        path: the branches from the first one down, as `Tree.path` gives them.
        prompt: text, token ids or chat messages.
        checkpoint: a path or a hub name.

    Raises:
        ParameterError: an empty path.
    """
    if not path:
        raise ParameterError("path must hold at least one branch, got none")
    # Of a branch that is left, only what comes before the fork is needed.
    counts = [max(1, branch.index) for branch in path[1:]]
    counts.append(shown_tokens(path[-1]))
    first, *rest = zip(path, counts, strict=True)
    code = _HEAD.format(
        checkpoint=checkpoint,
        settings=settings(first[0].generation.params),
        prompt=prompt if isinstance(prompt, str) else list(prompt),
        count=first[1],
    )
    for branch, count in rest:
        code += _FORK.format(
            settings=settings(branch.generation.params),
            index=branch.index,
            token_id=branch.token_id,
            count=count,
        )
    return f"{code}print(text.text)\n"


def shown_tokens(branch: Branch) -> int:
    """Return the `max_new_tokens` that ends a text where this one ended."""
    generation = branch.generation
    if generation.finish_reason == "cancelled":
        return max(1, len(generation.token_ids))
    return generation.max_new_tokens
