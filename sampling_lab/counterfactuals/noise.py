"""The random numbers of one step, held still so that they can be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ParameterError
from ..sampling.draws import DrawResult, Race, UniformDraw, inverse_cdf, segments
from ..sampling.params import SamplingParams
from ..sampling.validation import whole_number


class History(NamedTuple):
    """What was said before a step, for chains with penalties or with XTC.

    Attributes:
        token_ids: the prompt and what was generated after it.
        prompt_length: how many of them are the prompt.
    """

    token_ids: tuple[int, ...] = ()
    prompt_length: int = 0

    @property
    def step(self) -> int:
        """How many tokens were generated."""
        return len(self.token_ids) - self.prompt_length


NO_HISTORY = History()


@dataclass(frozen=True, eq=False)
class StepNoise:
    """The random numbers of one step; they choose from any final logits.

    Attributes:
        method: the draw's name, "race", "choices" or "keyed".
        exponentials: every token's q, shape (V,), in a race; otherwise None.
        uniform: the number in [0, 1) on a wheel; otherwise None.
    """

    method: str
    exponentials: Tensor | None = None
    uniform: float | None = None

    def choose(self, logits: Tensor) -> int:
        """Return the token that this luck chooses from final logits, shape (V,)."""
        if self.exponentials is None:
            return inverse_cdf(self.method, self.uniform, logits).token_id
        return int((logits.cpu().softmax(-1) / self.exponentials).argmax())


class Slice(NamedTuple):
    """A token's part of the wheel; `token_id` None is everything not named."""

    token_id: int | None
    low: float
    high: float


class RaceRow(NamedTuple):
    """One token in a race: the final probability, its luck q, and p / q."""

    token_id: int
    prob: float
    exponential: float
    score: float


def noise_of_step(
    logits: Tensor,
    params: SamplingParams,
    *,
    step: int = 0,
    drawn: DrawResult | None = None,
) -> StepNoise:
    """Return the luck of one step, the same numbers that its draw uses.

    Args:
        logits: the model's logits of that step, shape (V,).
        params: the seed and the dialect's draw count; temperature 0 does not, for
            the luck is there whether it is used or not.
        step: how many tokens the seed has drawn before, each from a vocabulary of
            the same size.
        drawn: what a generation drew at that step; then `step` is not needed.

    Example:
        >>> luck = noise_of_step(torch.zeros(3), SamplingParams(seed=7, dialect="xslm"))
        >>> luck.method, round(luck.uniform, 3)
        ('choices', 0.324)
    """
    wide = logits.detach().cpu()
    wide = wide if wide.dtype == torch.float64 else wide.float()  # as a chain does
    if drawn is not None and drawn.method == Race.name:
        return StepNoise(drawn.method, exponentials=drawn.exponentials(wide))
    if drawn is not None and drawn.uniform is not None:
        return StepNoise(drawn.method, uniform=drawn.uniform)
    if drawn is not None:
        raise ParameterError(
            f"a {drawn.method} step used no random number; give step= instead of drawn="
        )
    return _skip_to(params, whole_number("step", step, minimum=0), wide)


def _skip_to(params: SamplingParams, step: int, wide: Tensor) -> StepNoise:
    draw = params.replace(temperature=1.0).draw()  # a cold one has no luck
    draw.skip(step, wide)
    if isinstance(draw, UniformDraw):
        return StepNoise(draw.name, uniform=draw.next_uniform())
    return StepNoise(draw.name, exponentials=draw.exponentials(wide))


def wheel_slices(logits: Tensor, n: int = 20) -> tuple[Slice, ...]:
    """Return the wheel of final logits (V,): the n first slices, then the rest.

    The ends are those that `choices` and `keyed` compare their number with.

    >>> [(s.token_id, round(s.high, 2)) for s in wheel_slices(torch.tensor([0.0, 1]))]
    [(1, 0.73), (0, 1.0)]
    """
    candidates, ends = segments(logits)
    highs = (ends[:n] / ends[-1]).tolist()
    ids = candidates[:n].tolist()
    slices = tuple(map(Slice, ids, [0.0, *highs], highs))
    rest = (Slice(None, highs[-1], 1.0),) if len(ends) > n else ()
    return slices + rest


def race_rows(logits: Tensor, luck: StepNoise, n: int = 10) -> tuple[RaceRow, ...]:
    """Return the n best of a race over final logits (V,), the winner first.

    Raises:
        ParameterError: the luck is a wheel's number, not a race's.
    """
    if luck.exponentials is None:
        raise ParameterError(
            f"a race needs a race's luck, got {luck.method}; see wheel_slices"
        )
    probs, q = logits.cpu().softmax(-1), luck.exponentials
    scores = probs / q
    order = scores.sort(descending=True, stable=True).indices[:n]
    order = order[probs[order] > 0]  # a removed token does not run
    columns = (order, probs[order], q[order], scores[order])
    return tuple(map(RaceRow, *(column.tolist() for column in columns)))
