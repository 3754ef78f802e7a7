"""XSLM once more, in plain Python numbers: slow, without torch, and easy to check.

It follows the description of the format in `checkpoints/README.md` line by line and
shares no code with the package; the tests and the bench compare the two.
"""

import json
import math
import random
import re
from itertools import pairwise
from pathlib import Path

Vector = list[float]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix: list[Vector], x: Vector) -> Vector:
    return [dot(row, x) for row in matrix]


def plus(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def softmax(x: Vector) -> Vector:
    highest = max(x)
    exponentials = [math.exp(value - highest) for value in x]
    total = sum(exponentials)
    return [value / total for value in exponentials]


class Reference:
    """A checkpoint, read and run without the package."""

    def __init__(self, path: str | Path) -> None:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        self.settings, self.weights = data["settings"], data["weights"]
        self.merges = data["tokenizer"]["merges"]
        self.tokens = list(data["tokenizer"]["characters"])
        self.tokens += [left + right for left, right in self.merges]

    def encode(self, text: str) -> list[int]:
        """Merge, again and again, the leftmost pair that was learned first."""
        ids = []
        for chunk in re.findall(r"\n|[^\n ]* |[^\n ]+", text):
            pieces = list(chunk)
            while learned := [
                (self.merges.index(list(pair)), at)
                for at, pair in enumerate(pairwise(pieces))
                if list(pair) in self.merges
            ]:
                _, at = min(learned)
                pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            known = (piece if piece in self.tokens else "�" for piece in pieces)
            ids += [self.tokens.index(piece) for piece in known]
        return ids

    def logits(self, ids: list[int]) -> Vector:
        """Run every position of the window; return the last one's logits."""
        keys: list[Vector] = []
        values: list[Vector] = []
        logits: Vector = []
        for position, token in enumerate(ids[-self.settings["context"] :]):
            x, query, key, value = self.look(token, position)
            keys.append(key)
            values.append(value)
            logits = self.finish(x, query, keys, values)
        return logits

    def look(self, token: int, position: int) -> tuple[Vector, ...]:
        """Return a position's x, query, key and value."""
        x = plus(self.weights["tokens"][token], self.weights["positions"][position])
        return x, *(times(self.weights[name], x) for name in ("query", "key", "value"))

    def finish(
        self, x: Vector, query: Vector, keys: list[Vector], values: list[Vector]
    ) -> Vector:
        """Attend to all positions so far, then the two layers, then the output."""
        scale = math.sqrt(self.settings["width"])
        attention = softmax([dot(query, key) / scale for key in keys])
        columns = zip(*values, strict=True)
        attended = [dot(attention, list(column)) for column in columns]
        y = plus(x, times(self.weights["mix"], attended))
        hidden = [max(0.0, value) for value in times(self.weights["up"], y)]
        z = plus(y, times(self.weights["down"], hidden))
        return times(self.weights["output"], z)

    def choose(
        self, logits: Vector, temperature: float, top_k: int | None, luck: random.Random
    ) -> int:
        """Cut to exactly k candidates in rank order, then draw one."""
        ranked = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
        if temperature == 0:
            return ranked[0]
        candidates = ranked[:top_k]
        highest = logits[candidates[0]]
        weights = [math.exp((logits[i] - highest) / temperature) for i in candidates]
        return luck.choices(candidates, weights=weights)[0]

    def generate(
        self,
        prompt: str | list[int],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
        max_new_tokens: int | None = None,
        stop: bool = True,
    ) -> list[int]:
        """Return the new ids, without the newline that ended them."""
        ids = self.encode(prompt) if isinstance(prompt, str) else list(prompt)
        luck, new = random.Random(seed), []
        for _ in range(max_new_tokens or self.settings["tokens"]):
            token = self.choose(self.logits(ids + new), temperature, top_k, luck)
            if stop and self.tokens[token] == "\n":
                break
            new.append(token)
        return new
