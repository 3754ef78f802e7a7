"""Train the toy GPT on question-answer pairs: seconds of plain gradient descent.

`checkpoints/xslm/README.md` has the two commands that make the shipped checkpoints, the
same bytes each time on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ...errors import ParameterError, SamplingLabError
from ...sampling.one_thread import one_thread
from ...sampling.validation import whole_number
from .checkpoint import Checkpoint, Settings
from .network import forward, initial_weights, weight_shapes
from .tokenizer import BPE, NEWLINE

VOCAB_SIZE = 40
TRAINED_STEPS = 1000

PAIRS = (
    ("hi", "hello."),
    ("is the sun warm?", "the sun is warm."),
    ("is the sun hot?", "the sun is hot."),
    ("is the sky blue?", "the sky is blue."),
    ("is the sea blue?", "the sea is blue."),
    ("can the dog run?", "the dog can run."),
    ("what is warm?", "the sun is warm."),
    ("what is hot?", "the tea is hot."),
    ("what is blue?", "the sky is blue."),
    ("what can run?", "the dog can run."),
    ("is the cat blue?", "no."),
    ("can the sun run?", "no."),
)
"""The twelve questions and answers of the shipped checkpoints."""

_IGNORE = -100
_DECIMALS = 6
_LONGEST_GRADIENT = 1.0

Pairs = Sequence[tuple[str, str]]
OnStep = Callable[[int, float], None]


@one_thread()  # sums in one order, however busy the machine
@torch.inference_mode(False)
@torch.enable_grad()
def train_checkpoint(
    pairs: Pairs = PAIRS,
    *,
    steps: int = TRAINED_STEPS,
    seed: int | None = None,
    learning_rate: float | None = None,
    checkpoint: Checkpoint | None = None,
    on_step: OnStep | None = None,
) -> Checkpoint:
    """Train a new checkpoint, or `checkpoint` further, and return it.

    Every step is one step of plain gradient descent on all the text at once, a
    gradient longer than 1 being shortened to 1. Nothing but the weights passes from
    step to step, so training in chunks gives the weights of training in one go. The
    arithmetic is float64 and each step's weights are rounded to six decimals, as
    files hold them: the last bits, in which machines differ, are dropped before they
    can grow.

    Args:
        pairs: questions and answers, without newlines.
        steps: how many more steps, >= 1.
        seed: draws the initial weights; None means 0. Only for a new checkpoint.
        learning_rate: > 0; None means 1.0, or that of `checkpoint`.
        checkpoint: where to continue.
        on_step: called with the step's number and the loss (nats a token) before it.

    Raises:
        ParameterError: an argument outside its rule.
        SamplingLabError: the loss is no longer finite.
    """
    whole_number("steps", steps)
    if checkpoint is None:
        checkpoint = _new_checkpoint(pairs, 0 if seed is None else seed)
    elif seed is not None:
        raise ParameterError(
            f"seed must be None when a checkpoint continues, got {seed!r}; its weights "
            "are drawn already"
        )
    settings = checkpoint.settings
    if learning_rate is not None:
        settings = replace(settings, learning_rate=learning_rate)
    inputs, targets = windows(pairs, checkpoint.tokenizer, settings.context)
    weights = {name: weight.clone() for name, weight in checkpoint.weights.items()}
    for step in range(settings.steps, settings.steps + steps):
        loss = _descend(weights, inputs, targets, settings.learning_rate)
        if not loss < float("inf"):
            raise SamplingLabError(
                f"the loss must stay finite, got {loss} at step {step}; "
                "use a smaller learning_rate"
            )
        if on_step is not None:
            on_step(step, loss)
    return Checkpoint(
        replace(settings, steps=settings.steps + steps),
        checkpoint.tokenizer,
        weights,
        checkpoint.notes,
    )


def training_text(pairs: Pairs) -> list[str]:
    r"""Return one text for each pair.

    >>> training_text([("hi", "hello.")])
    ['Q: hi\nA: hello.\n']

    Raises:
        ParameterError: no pairs, or something that is not a pair of single lines.
    """
    if not pairs:
        raise ParameterError(
            "pairs must hold at least one (question, answer), got none"
        )
    for pair in pairs:
        lines = isinstance(pair, tuple | list) and len(pair) == 2
        if not lines or not all(isinstance(s, str) and NEWLINE not in s for s in pair):
            raise ParameterError(
                f"pairs must be (question, answer) strings of one line, got {pair!r}"
            )
    return [f"Q: {question}\nA: {answer}\n" for question, answer in pairs]


def windows(pairs: Pairs, tokenizer: BPE, context: int) -> tuple[Tensor, Tensor]:
    """Return every stretch of at most `context` tokens and the tokens that follow.

    Generation slides a window over the text, so training sees a window begin at
    every token. Windows at the end of a text are filled up, and what follows there
    is not counted in the loss.

    Returns:
        Two integer tensors, shape (N, context): the inputs and their next tokens.
    """
    inputs, targets = [], []
    for text in training_text(pairs):
        ids = tokenizer.encode(text)
        for start in range(len(ids) - 1):
            window = ids[start : start + context + 1]
            filling = context + 1 - len(window)
            inputs.append(window[:-1] + [tokenizer.newline_id] * filling)
            targets.append(window[1:] + [_IGNORE] * filling)
    return torch.tensor(inputs), torch.tensor(targets)


def _new_checkpoint(pairs: Pairs, seed: int) -> Checkpoint:
    settings = Settings(training_seed=seed)
    tokenizer = BPE.learn("".join(training_text(pairs)), VOCAB_SIZE)
    shapes = weight_shapes(settings.width, settings.context, tokenizer.vocab_size)
    generator = torch.Generator().manual_seed(seed)
    drawn = initial_weights(shapes, generator)
    weights = {name: _rounded(weight) for name, weight in drawn.items()}
    return Checkpoint(settings, tokenizer, weights)


def _descend(
    weights: dict[str, Tensor], inputs: Tensor, targets: Tensor, learning_rate: float
) -> float:
    """Replace `weights` by those one step downhill; return the loss before it."""
    leaves = {
        name: weight.detach().requires_grad_() for name, weight in weights.items()
    }
    logits = forward(leaves, inputs)  # (N, T, V)
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=_IGNORE)
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    length = torch.stack([gradient.norm() for gradient in gradients]).norm()
    stride = learning_rate / max(1.0, length.item() / _LONGEST_GRADIENT)
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        weights[name] = _rounded(leaf.detach() - stride * gradient)
    return loss.item()


def _rounded(weight: Tensor) -> Tensor:
    """Round to a fixed number of decimals, so that a short decimal is exact."""
    return weight.round(decimals=_DECIMALS)
