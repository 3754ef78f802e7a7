"""What the commands do; `sampling_lab.cli` reads their arguments."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FetchError, ParameterError
from ..text import terminal
from .terminal import INTERRUPTED, error_line

if TYPE_CHECKING:
    from ..generation.loop import Run
    from ..generation.results import Generation
    from ..models.base import ModelCard
    from ..sampling.params import SamplingParams


def generate(args: Namespace) -> int:
    """Generate once and print JSON, or text for people."""
    from ..generation.loop import generate, stream
    from ..sampling.validation import whole_number
    from .options import given_ends, load_model, read_params

    read_params(args)  # refused before anything is loaded
    prompt = _prompt(args)
    options = given_ends(args)
    if "steps" in args:
        whole_number("--steps", args.steps)
    model = load_model(args)
    if prompt is None:
        prompt = model.card.default_prompt or ""
    params = read_params(args, model.card, **model.card.starting_params)
    if "stream" in args:
        generation = _write_stream(stream(model, prompt, params, **options))
    else:
        generation = generate(model, prompt, params, **options)
        if "text" in args:
            sys.stdout.write(f"{terminal(generation.text)}\n")
    if "stream" in args or "text" in args:
        _write_notes(generation)
    else:
        document = _document(args, params, generation, model.card)
        if model.tokenizer is None:
            del document["generated_text"]
        write_json(document)
    return INTERRUPTED if generation.finish_reason == "cancelled" else 0


def _prompt(args: Namespace) -> str | list[int] | None:
    """Return what was given; None where the checkpoint's format has a prompt itself."""
    if "prompt" in args:
        return str(args.prompt)
    if "token_ids" not in args:
        from ..models.formats import begins_as

        path = Path(args.checkpoint)
        if path.is_file() and begins_as(path) == "json":
            return None
        raise ParameterError("give --prompt TEXT or --token-ids IDS")
    from ..sampling.settings_text import read_token_ids

    ids = read_token_ids(args.token_ids)
    if ids is None:
        raise ParameterError(
            f"--token-ids must be comma-separated integers, got {args.token_ids!r}"
        )
    return ids


def _given(args: Namespace, *names: str) -> dict[str, Any]:
    """Return those of the options that were given."""
    return {name: getattr(args, name) for name in names if name in args}


def _write_stream(run: Run) -> Generation:
    """Write the text piece by piece; an interrupt keeps the text so far."""
    try:
        for step in run:
            sys.stdout.write(terminal(step.text))
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    sys.stdout.write("\n")
    return run.generation


def _write_notes(generation: Generation) -> None:
    for note in generation.notes:
        error_line("note", note)


def _document(
    args: Namespace, params: SamplingParams, generation: Generation, card: ModelCard
) -> dict[str, Any]:
    """Return a generation as the JSON document of `sampling-lab generate`."""
    from ..models.checks import is_plain
    from .options import given_parameters

    defaults: dict[str, Any] = {
        "mode": "sample",
        "max_new_tokens": None,
        "stop": [],
        "eos_id": None,
    }
    # Greedy ignores some values, bad ones too, and they were asked for nevertheless.
    ignored = given_parameters(args).items() if params.is_greedy else ()
    requested = {
        **params.to_dict(),
        **{name: value for name, value in ignored if is_plain(value)},
        **defaults,
        **_given(args, *defaults),
    }
    effective = {
        **generation.params.effective(card.vocab_size),
        "mode": "greedy" if generation.params.is_greedy else "sample",
        "max_new_tokens": generation.max_new_tokens,
        "stop": generation.stop,
        "stop_token_ids": generation.stop_token_ids,
    }
    document = {
        "checkpoint": card.to_dict(),
        "device": card.device,
        "precision": card.dtype,
        "dialect": generation.params.dialect,
        "parameters": {
            "requested": requested,
            "effective": effective,
        },
        "seed": effective["seed"],
        "prompt_token_ids": generation.prompt_ids,
        "generated_token_ids": generation.token_ids,
        "finish_reason": generation.finish_reason,
        "generated_text": generation.text,
        "notes": generation.notes,
    }
    if "steps" in args:
        document["steps"] = _steps(generation, args.steps)
    return document


def _steps(generation: Generation, count: int) -> list[dict[str, Any]]:
    """Return every step, a stop token's too, with its most likely tokens."""
    return [
        {
            **step.to_dict(),
            "candidates": ledger.table(count),
            **({"evidence": ledger.evidence} if ledger.evidence else {}),
        }
        for step in generation.all_steps
        if (ledger := step.ledger())
    ]


def write_json(document: dict[str, Any]) -> None:
    """Write one strict JSON document: UTF-8 where the terminal can show it."""
    text = _to_json(document, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = _to_json(document, ensure_ascii=True)
    sys.stdout.write(f"{text}\n")


def _to_json(document: dict[str, Any], *, ensure_ascii: bool) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=ensure_ascii, allow_nan=False)
    # A list of numbers on one line; strings hold no bare line feed, so none is touched.
    return re.sub(r"\[\n[-+.0-9e,\s]+\]", _on_one_line, text)


def _on_one_line(numbers: re.Match[str]) -> str:
    return f"[{' '.join(numbers[0][1:-1].split())}]"


def info(args: Namespace) -> int:
    """Print a checkpoint's card, for people or as JSON."""
    from ..models import load

    card = load(args.checkpoint).card
    if args.json:
        write_json(card.to_dict())
    else:
        lines = [card.name, *(f"  {name:<19}{value}" for name, value in _rows(card))]
        sys.stdout.write(terminal("\n".join(lines)) + "\n")
    return 0


def _rows(card: ModelCard) -> Iterator[tuple[str, str]]:
    """Yield a card's rows, each a name and a value for people."""
    from ..models.formats import FORMATS

    context = card.context_length
    yield "format", f"{card.format}: {FORMATS[card.format].description}"
    yield "parameters", f"{card.parameters:,}"
    yield "vocabulary", f"{card.vocab_size:,} tokens"
    yield "context", "unlimited" if context is None else f"{context:,} tokens"
    yield "precision", f"{card.dtype} on {card.device}"
    yield "dialect", card.dialect
    yield "stop tokens", ", ".join(map(str, card.stop_token_ids)) or "none"
    yield "chat template", "yes" if card.chat else "no"
    yield "max new tokens", f"{card.default_max_new_tokens} unless told otherwise"
    offered = ", ".join(f"{name} {value}" for name, value in card.defaults.items())
    chats = "a chat begins with them" if card.chat_params else "never applied unasked"
    begun = "begun with here and in the explorer"
    applied = begun if card.starting_params else f"offered by --author; {chats}"
    yield "author's defaults", f"{offered or 'none'} ({applied})"
    for name, value in card.details.items():
        yield name.replace("_", " "), str(value)
    for path in card.files:
        yield "file", str(path)
    yield "sha256", card.digest or "none"


def fetch(args: Namespace) -> int:
    """Fetch models or tokenizers and print where each lies."""
    from ..models.fetch import fetch

    for name in args.names:
        try:
            path = fetch(name, args.into)
        except FetchError as error:
            if not args.optional:
                raise
            error_line("warning", f"could not fetch {name}: {error}")
        else:
            sys.stdout.write(f"{path}\n")
    return 0
