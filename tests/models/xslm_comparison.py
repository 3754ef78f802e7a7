"""Random generations of XSLM by the package and by plain Python, for test and bench."""

from __future__ import annotations

import functools
import random
from pathlib import Path

from sampling_lab import SamplingParams, generate
from sampling_lab.models.xslm.model import PAIRS, XSLM
from tests.models.xslm_reference import Reference


class SoonerReference(Reference):
    """The same numbers without those that the last position does not need."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.look = functools.cache(super().look)

    def logits(self, ids: list[int]) -> list[float]:
        looks = [self.look(token, at) for at, token in enumerate(ids[-12:])]
        keys, values = ([look[part] for look in looks] for part in (2, 3))
        return self.finish(*looks[-1][:2], keys, values)


def random_prompt(dice: random.Random) -> str:
    """Return a question, known or made up, or any text of the vocabulary."""
    words = "hi is the sun sky sea tea dog can run what warm hot blue no hello".split()
    kind = dice.randrange(3)
    if kind == 0:
        return f"Q: {dice.choice(PAIRS)[0]}\nA: "
    if kind == 1:
        return f"Q: {' '.join(dice.choices(words, k=dice.randint(1, 4)))}?\nA: "
    return "".join(dice.choices("QA:?. \nabcdeghiklmnorstuwy", k=dice.randint(1, 30)))


def first_difference(model: XSLM, path: Path, count: int) -> tuple[object, ...] | None:
    """Compare random generations; return the first case that differs, or None."""
    dice, slow, sooner = random.Random(0), Reference(path), SoonerReference(path)
    for turn in range(count):
        prompt = random_prompt(dice)
        settings = {
            "temperature": dice.choice([0, 0.3, 0.7, 1.0, 1.3, dice.uniform(0.01, 2)]),
            "top_k": dice.choice([None, 1, 2, 3, 5, 40, dice.randint(1, 50)]),
            "seed": dice.choice([0, 1, dice.randrange(2**64)]),
        }
        expected = (slow if turn < 5 else sooner).generate(prompt, **settings)
        found = generate(model, prompt, SamplingParams(**settings)).token_ids
        if list(found) != expected:
            return prompt, settings, found, expected
    return None
