"""Every kind of tokenizer: what streams is what its ids decode to."""

import json
import random
import string
from collections.abc import Callable

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    ByT5Tokenizer,
    CTRLTokenizer,
    PreTrainedTokenizerFast,
)

from sampling_lab import SamplingParams, generate, stream
from sampling_lab.models.base import Model, ModelCard
from sampling_lab.models.huggingface.tokenizer import HfTokenizer
from tests import tiny

SEQUENCES = 1_000  # of each kind; 11 kinds
WORDS = ["the", "cat", "sat", "on", "né", "好", "."]


def fast(model, decoder=None, normalizer=None, pre=None, **options):
    backend = Tokenizer(model)
    if decoder is not None:
        backend.decoder = decoder
    if normalizer is not None:
        backend.normalizer = normalizer
    if pre is not None:
        backend.pre_tokenizer = pre
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", eos_token="</s>", **options
    )


def pieces(words):
    return {piece: n for n, piece in enumerate(["<unk>", "</s>", *words])}


def unigram(scheme):
    words = [("▁" + w, -1.0) for w in WORDS] + [(c, -3.0) for c in "aehnost▁"]
    space = {"prepend_scheme": scheme}
    return fast(
        models.Unigram([("<unk>", 0.0), ("</s>", 0.0), *words], 0, False),
        decoders.Metaspace(**space),
        pre=pre_tokenizers.Metaspace(**space),
    )


def unigram_without_a_prefix_space():
    return unigram("never")


def unigram_with_a_prefix_space():
    return unigram("always")


def bytes_without_a_prefix_space():
    """Gemma's kind: byte fallback, and no space is put before the text."""
    words = [f"<0x{byte:02X}>" for byte in range(256)]
    words += ["▁", *"abcehnost", *("▁" + w for w in WORDS)]
    return fast(
        models.BPE(pieces(words), [], byte_fallback=True, unk_token="<unk>"),
        decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        ),
        normalizers.Replace(" ", "▁"),
    )


def word_level():
    return fast(
        models.WordLevel(pieces(WORDS), "<unk>"), pre=pre_tokenizers.Whitespace()
    )


def characters():
    return fast(
        models.WordLevel(pieces(string.ascii_letters + " é好\n"), "<unk>"),
        decoders.Fuse(),
        pre=pre_tokenizers.Split("", "isolated"),
    )


def gpt1():
    words = [f"{w}</w>" for w in WORDS] + [*"abehnost"]
    return fast(
        models.BPE(pieces(words), [], unk_token="<unk>", end_of_word_suffix="</w>"),
        decoders.BPEDecoder("</w>"),
        pre=pre_tokenizers.BertPreTokenizer(),
    )


def byt5():
    return ByT5Tokenizer()


def from_files(kind, tmp_path_factory, words):
    folder = tmp_path_factory.mktemp("words")
    vocabulary = json.dumps(pieces(words))
    (folder / "vocab.json").write_text(vocabulary)
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return kind(str(folder / "vocab.json"), str(folder / "merges.txt"))


KINDS = [
    tiny.byte_level,
    tiny.sentence_piece,
    tiny.word_piece,
    bytes_without_a_prefix_space,
    unigram_with_a_prefix_space,
    unigram_without_a_prefix_space,
    word_level,
    characters,
    gpt1,
    byt5,
]


def kind(made):
    """Return the name of a test; a function's own text differs between processes."""
    return made.__name__ if made else "ctrl"


@pytest.fixture(scope="module", params=[*KINDS, None], ids=kind)
def tokenizer(request, tmp_path_factory):
    made: Callable | None = request.param
    if made is None:
        words = [*WORDS, "th@@", "c@@", "e@@"]
        return HfTokenizer(from_files(CTRLTokenizer, tmp_path_factory, words))
    return HfTokenizer(made())


class Script(Model):
    """A model whose next token is always the next of a list."""

    def __init__(self, tokenizer, ids, start):
        size = tokenizer.vocab_size
        card = ModelCard(
            "script", "fake", 0, size, None, "float32", "cpu", "transformers"
        )
        super().__init__(card, tokenizer)
        self.script, self.start = ids, start

    def _forward(self, ids):
        logits = torch.zeros(self.card.vocab_size)
        logits[self.script[len(ids) - self.start]] = 1.0
        return logits


GREEDY = SamplingParams(temperature=0)


def run(tokenizer, before, ids, **options):
    model = Script(tokenizer, ids, len(before))
    options = {"max_new_tokens": len(ids), "stop_token_ids": (), **options}
    return generate(model, before, GREEDY, **options)


def random_ids(tokenizer, turn):
    """Return any ids, or a few again and again, so that bytes stand together."""
    dice = random.Random(turn)
    some = [dice.randrange(tokenizer.vocab_size) for _ in range(300)]
    some = some[:6] if turn % 2 else some
    return [dice.choice(some) for _ in range(dice.choice([2, 3, 6, 20, 40]))]


def test_what_streams_is_what_all_ids_decode_to(tokenizer):
    model = Script(tokenizer, [], 0)
    for turn in range(SEQUENCES):
        ids = random_ids(tokenizer, turn)
        decoder = model.decoder()
        pieces = [decoder.push(token_id) for token_id in ids]
        assert "".join(pieces) + decoder.flush() == tokenizer.decode(ids), ids
        assert not decoder.rewritten


def test_the_prompt_and_the_text_are_the_whole(tokenizer):
    whole_texts = 0
    model = Script(tokenizer, [], 0)
    for turn in range(SEQUENCES):
        ids = random_ids(tokenizer, turn)
        cut = random.Random(turn).randrange(1, len(ids))
        decoder = model.decoder(ids[:cut])
        pieces = [decoder.push(token_id) for token_id in ids[cut:]]
        text = "".join(pieces) + decoder.flush()
        prompt, whole = tokenizer.decode(ids[:cut]), tokenizer.decode(ids)
        if whole.startswith(prompt):
            whole_texts += 1
            assert prompt + text == whole, (ids, cut)
        else:  # the end of the prompt is read in another way now
            assert whole.endswith(text)
            assert decoder.rewritten or prompt.endswith("\ufffd")
    assert whole_texts > SEQUENCES * 0.5


def plain(text):
    """Return a text without stray bytes, and without what its ends leave open."""
    return text.replace("\ufffd", "").removeprefix("##").removesuffix("@@").strip(" ")


def test_chips_join_to_the_bytes(tokenizer):
    silent = set(tokenizer.special_tokens.values())
    for turn in range(SEQUENCES):
        ids = [n for n in random_ids(tokenizer, turn) if n not in silent]
        joined = b"".join(map(tokenizer.token_bytes, ids))
        if b"\xff" in joined or b"\xfe" in joined or tokenizer.probes:
            # One stray byte turns its whole run of byte tokens into U+FFFD.
            ids = [n for n in ids if len(tokenizer.token_bytes(n)) > 1 or n < 128]
            joined = b"".join(map(tokenizer.token_bytes, ids))
        text = joined.decode(errors="replace")
        assert plain(text) == plain(tokenizer.decode(ids)), ids


def test_stop_strings_cut_where_they_stand_in_the_text(tokenizer):
    cut = 0
    for turn in range(60):
        ids = random_ids(tokenizer, turn)
        text = run(tokenizer, ids[:1], ids[1:]).text
        if len(text) < 4:
            continue
        at = random.Random(turn).randrange(len(text) - 2)
        stop = text[at : at + 2]
        result = run(tokenizer, ids[:1], ids[1:], stop=stop)
        assert result.text == text[: text.index(stop)], (ids, stop)
        assert result.finish_reason == "stop"
        assert "".join(step.text for step in result.steps) == result.text
        cut += 1
    assert cut > 20


def spelled(tokenizer, *pieces):
    vocabulary = tokenizer.wrapped.get_vocab()
    return [vocabulary[piece] for piece in pieces]


def test_nothing_after_a_stray_byte_is_lost():
    tokenizer = HfTokenizer(tiny.sentence_piece())
    prompt = spelled(tokenizer, "▁hello")
    ids = spelled(tokenizer, "<0x0A>", "<0xC3>", "▁world", "▁hello")
    result = run(tokenizer, prompt, ids)
    assert result.text == "\ufffd\ufffd world hello"
    assert not any("changed text" in note for note in result.notes)
    assert run(tokenizer, prompt, ids, stop="wor").text == "\ufffd\ufffd "


def test_a_prompt_that_the_new_tokens_change_is_said_once():
    tokenizer = HfTokenizer(tiny.sentence_piece())
    prompt = spelled(tokenizer, "▁hello", "<0x0A>")
    result = run(tokenizer, prompt, spelled(tokenizer, "<0xC3>", "▁world"))
    assert result.text == "\ufffd\ufffd world"
    assert len([note for note in result.notes if "changed text" in note]) == 1


def test_the_space_between_prompt_and_text_is_text():
    tokenizer = HfTokenizer(tiny.sentence_piece())
    ids = spelled(tokenizer, "▁world", "▁hello")
    model = Script(tokenizer, ids, 1)
    steps = list(stream(model, "hello", GREEDY, max_new_tokens=2, stop_token_ids=()))
    assert [step.text for step in steps] == [" world", " hello"]


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("<|im_end|>", "the sun"),
        ("sun<|im_end|>", "the "),
        ("<|im_end|><|im_start|>", "the sun"),
        ("<|im_start|> is", "the sun"),
        ("n is", "the su"),
        (["<|endoftext|>", " is w"], "the sun"),
        ("<|im_start|>warm", "the sun is warm"),
    ],
)
def test_stop_strings_may_name_special_tokens(stop, text):
    tokenizer = HfTokenizer(tiny.byte_level())
    said = [*tokenizer.encode("the sun"), 2, 1, *tokenizer.encode(" is warm")]
    result = run(tokenizer, [0], said, stop=stop)
    assert result.text == "".join(step.text for step in result.steps) == text


@pytest.mark.parametrize(
    ("make", "piece", "data"),
    [
        (gpt1, "the</w>", b"the "),
        (gpt1, "e", b"e"),
        (byt5, "\u00c3", b"\xc3"),
        (byt5, "\u00a9", b"\xa9"),
        (word_level, "cat", b" cat"),
        (tiny.word_piece, "##ny", b"ny"),
        (bytes_without_a_prefix_space, "<0xC3>", b"\xc3"),
        (unigram_with_a_prefix_space, "▁né", " né".encode()),
    ],
)
def test_the_bytes_of_a_piece(make, piece, data):
    tokenizer = HfTokenizer(make())
    assert tokenizer.token_bytes(*spelled(tokenizer, piece)) == data
