"""What came before a step, for the stages that depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor


class Guide(Protocol):
    """What `sampling_lab.generation.guide.Guide` is to a stage."""

    def allowed(self, new_ids: Sequence[int], /) -> Tensor:
        """Return which tokens can follow the new tokens of a text, bool (V,)."""
        ...


class History(NamedTuple):
    """The tokens before a step, and what ends the text.

    Attributes:
        token_ids: the prompt and what was generated after it.
        prompt_length: how many of them are the prompt.
        stop_token_ids: the tokens that end the text, for its least length.
        surprises: of each generated token, in bits: -log2 of its final probability;
            for Mirostat.
        guide: tells which tokens a grammar allows; None without one.
    """

    token_ids: Sequence[int] = ()
    prompt_length: int = 0
    stop_token_ids: Sequence[int] = ()
    surprises: Sequence[float] = ()
    guide: Guide | None = None

    def first(self, n: int) -> History:
        """Return the history after the first `n` tokens, the prompt's included."""
        surprises = self.surprises[: max(0, n - self.prompt_length)]
        return self._replace(token_ids=self.token_ids[:n], surprises=surprises)

    @property
    def step(self) -> int:
        """How many tokens were generated before."""
        return len(self.token_ids) - self.prompt_length


NO_HISTORY = History()
