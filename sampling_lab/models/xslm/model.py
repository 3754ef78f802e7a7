r"""XSLM: a toy GPT of about 15,000 weights, 40 tokens and a sliding window of 12.

It answers one-line questions (``"Q: hi\nA: "``) and ends an answer with a newline.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import ParameterError
from ..base import Model, ModelCard
from ..device import find_device
from .checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from .network import forward
from .tokenizer import BPE
from .training import PAIRS, TRAINED_STEPS, OnStep, Pairs, train_checkpoint

__all__ = ["PAIRS", "XSLM", "load", "train"]


class XSLM(Model):
    """The toy GPT as a model; float64 arithmetic on the last `context` tokens."""

    tokenizer: BPE

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        device: torch.device | None = None,
        path: Path | None = None,
    ) -> None:
        device = device or torch.device("cpu")
        super().__init__(_card(checkpoint, device, path), checkpoint.tokenizer)
        self.checkpoint = checkpoint
        self._weights = {
            name: weight.to(device) for name, weight in checkpoint.weights.items()
        }
        self._device = device

    def _forward(self, ids: tuple[int, ...]) -> Tensor:
        context = self.checkpoint.settings.context
        window = torch.tensor(ids[-context:], device=self._device)  # (T,)
        return forward(self._weights, window, last=1)[0]  # (V,)

    def budget(self, prompt_length: int, max_new_tokens: int) -> int:
        """Return `max_new_tokens`: the window slides, so any prompt fits.

        Raises:
            ParameterError: more tokens than the checkpoint's `max_tokens`.
        """
        limit = self.checkpoint.settings.max_tokens
        if max_new_tokens > limit:
            raise ParameterError(
                f"max_new_tokens must be <= {limit} for {self.card.name}, "
                f"got {max_new_tokens}"
            )
        return max_new_tokens

    def save(self, path: str | Path) -> None:
        """Write the checkpoint as a file that `load` reads."""
        write_checkpoint(self.checkpoint, path)


def load(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
    **options: Any,
) -> XSLM:
    """Load a checkpoint file.

    The arguments are those of `sampling_lab.load`: of dtypes the format has only
    float64, it holds no code, and it has no options.

    Raises:
        CheckpointError: the file is not a whole, consistent checkpoint.
        ParameterError: another dtype, or an option.
    """
    if dtype not in ("auto", "float64"):
        raise ParameterError(
            f"dtype must be 'auto' or 'float64' for XSLM, got {dtype!r}"
        )
    if options:
        raise ParameterError(f"XSLM takes no options, got {', '.join(sorted(options))}")
    path = Path(path)
    checkpoint = read_checkpoint(path)
    if checkpoint.notes:
        warnings.warn(f"{path}: {'; '.join(checkpoint.notes)}", stacklevel=3)
    return XSLM(checkpoint, device=find_device(device), path=path)


def train(
    pairs: Pairs = PAIRS,
    *,
    steps: int = TRAINED_STEPS,
    seed: int | None = None,
    learning_rate: float | None = None,
    checkpoint: XSLM | str | Path | None = None,
    on_step: OnStep | None = None,
) -> XSLM:
    """Train a new model, or a copy of `checkpoint` further, and return it.

    The arguments are those of `training.train_checkpoint`, except that `checkpoint` is
    a model or a file; training in chunks equals one long training.

    Example:
        >>> from sampling_lab.models.xslm.model import train
        >>> model = train([("hi", "hello.")], steps=20)
        >>> model.card.vocab_size < 40
        True
    """
    if isinstance(checkpoint, str | Path):
        checkpoint = load(checkpoint)
    if checkpoint is not None and not isinstance(checkpoint, XSLM):
        raise ParameterError(
            f"checkpoint must be an XSLM model or a file, got {checkpoint!r}"
        )
    return XSLM(
        train_checkpoint(
            pairs,
            steps=steps,
            seed=seed,
            learning_rate=learning_rate,
            checkpoint=checkpoint.checkpoint if checkpoint else None,
            on_step=on_step,
        )
    )


def _card(checkpoint: Checkpoint, device: torch.device, path: Path | None) -> ModelCard:
    settings = checkpoint.settings
    return ModelCard(
        name=f"XSLM after {settings.steps:,} steps" if settings.steps else "XSLM",
        format="xslm",
        parameters=sum(weight.numel() for weight in checkpoint.weights.values()),
        vocab_size=checkpoint.tokenizer.vocab_size,
        context_length=settings.context,
        dtype="float64",
        device=str(device),
        dialect="xslm",
        stop_token_ids=(checkpoint.tokenizer.newline_id,),
        default_max_new_tokens=settings.tokens,
        defaults={**settings.sampling, "max_new_tokens": settings.tokens},
        starting_params=settings.sampling,
        default_prompt="Q: hi\nA: ",
        files=(path,) if path else (),
        details={
            "width": settings.width,
            "training seed": settings.training_seed,
            "training steps": settings.steps,
            "max_tokens": settings.max_tokens,
            **({"notes": "; ".join(checkpoint.notes)} if checkpoint.notes else {}),
        },
    )
