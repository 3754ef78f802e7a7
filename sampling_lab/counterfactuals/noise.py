"""The random numbers of one step, so that other settings can be tried with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ..errors import ParameterError
from ..sampling.arguments import checked
from ..sampling.draws import (
    DrawResult,
    Race,
    UniformDraw,
    race_result,
    race_scores,
    segments,
    uniform_result,
)
from ..sampling.params import SamplingParams
from ..sampling.stage import as_float
from ..sampling.validation import whole_number


@dataclass(frozen=True, eq=False)
class StepNoise:
    """The random numbers of one step; they choose from any final logits.

    Attributes:
        method: the draw's name, "race", "choices" or "keyed".
        exponentials: every token's q, shape (V,), in a race; otherwise None.
        uniform: the number in [0, 1) for the inverse CDF; None in a race.
    """

    method: str
    exponentials: Tensor | None = None
    uniform: float | None = None

    def draw(self, logits: Tensor) -> DrawResult:
        """Return what these numbers draw from final logits, shape (V,)."""
        if self.exponentials is not None:
            return race_result(logits, self.exponentials)
        assert self.uniform is not None, "a draw has one kind of number or the other"
        return uniform_result(self.method, self.uniform, logits)

    def choose(self, logits: Tensor) -> int:
        """Return the token that these numbers choose from final logits, shape (V,)."""
        return self.draw(logits).token_id


class Slice(NamedTuple):
    """A token's segment of the wheel; `token_id` None is all other tokens together."""

    token_id: int | None
    low: float
    high: float


class RaceRow(NamedTuple):
    """One token in a race: the final probability p, its Exp(1) number q, and p / q."""

    token_id: int
    prob: float
    exponential: float
    score: float


@checked
def noise_of_step(
    logits: Tensor,
    params: SamplingParams,
    *,
    step: int = 0,
    drawn: DrawResult | None = None,
) -> StepNoise:
    """Return the random numbers of one step, the same that its draw uses.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: only the seed and the draw matter; at temperature 0 the numbers are
            those that a higher temperature would use.
        step: how many tokens the seed has drawn before, each from a vocabulary of
            the same size.
        drawn: what a generation drew at that step; then `step` is not needed.

    Example:
        >>> import torch
        >>> params = SamplingParams(seed=7, dialect="xslm")
        >>> noise = noise_of_step(torch.zeros(3), params)
        >>> noise.method, round(noise.uniform, 3)
        ('choices', 0.324)
    """
    wide = as_float(logits.detach().cpu())
    if drawn is not None and drawn.method == Race.name:
        return StepNoise(drawn.method, exponentials=drawn.exponentials(wide))
    if drawn is not None and drawn.uniform is not None:
        return StepNoise(drawn.method, uniform=drawn.uniform)
    if drawn is not None:
        raise ParameterError(
            f"a {drawn.method} step used no random number; give step= instead of drawn="
        )
    draw = params.replace(temperature=1.0).draw()  # greedy draws have no numbers
    draw.skip(whole_number("step", step, minimum=0), wide)
    if isinstance(draw, UniformDraw):
        return StepNoise(draw.name, uniform=draw.next_uniform())
    assert isinstance(draw, Race), "there are two kinds of draw besides greedy"
    return StepNoise(draw.name, exponentials=draw.exponentials(wide))


@checked
def wheel_slices(logits: Tensor, n: int = 20) -> tuple[Slice, ...]:
    """Return the "wheel" of final logits (V,): the n first slices, then the rest.

    It is the CDF in which `choices` and `keyed` look their uniform number up.

    >>> import torch
    >>> [(s.token_id, round(s.high, 2)) for s in wheel_slices(torch.tensor([0.0, 1]))]
    [(1, 0.73), (0, 1.0)]
    """
    candidates, ends = segments(logits)
    highs = (ends[:n] / ends[-1]).tolist()
    ids = candidates[:n].tolist()
    slices = tuple(map(Slice, ids, [0.0, *highs], highs))
    rest = (Slice(None, highs[-1], 1.0),) if len(ends) > n else ()
    return slices + rest


@checked
def race_rows(logits: Tensor, noise: StepNoise, n: int = 10) -> tuple[RaceRow, ...]:
    """Return the n best of a race over final logits (V,), the winner first.

    Raises:
        ParameterError: the noise is one uniform number, not a race's.
    """
    if noise.exponentials is None:
        raise ParameterError(
            f"race_rows needs the noise of a race, got {noise.method}; see wheel_slices"
        )
    probs, q = logits.cpu().softmax(-1), noise.exponentials
    scores = race_scores(probs, q)
    order = scores.sort(descending=True, stable=True).indices[:n]
    order = order[probs[order] > 0]  # without removed tokens
    columns = (order, probs[order], q[order], scores[order])
    return tuple(map(RaceRow, *(column.tolist() for column in columns)))
