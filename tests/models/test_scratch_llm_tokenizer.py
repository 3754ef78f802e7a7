"""r50k_base: the right ids, plain text only, found locally or explained."""

import base64
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.errors import CheckpointError
from sampling_lab.models.byte_level import byte_of_character
from sampling_lab.models.scratch_llm import tokenizer as r50k
from sampling_lab.models.scratch_llm.tokenizer import VOCAB_SIZE


@pytest.fixture(scope="module")
def tokenizer():
    return r50k.load_r50k()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no tiktoken to fall back on."""
    monkeypatch.setenv("SAMPLING_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(r50k, "_tiktoken_has_it", lambda: False)
    r50k.load_r50k.cache_clear()
    yield tmp_path / "r50k_base"
    r50k.load_r50k.cache_clear()


@pytest.fixture(scope="module")
def ranks_bytes(tokenizer):
    tokens = (base64.b64encode(tokenizer.token_bytes(n)) for n in range(50256))
    return b"".join(token + b" %d\n" % rank for rank, token in enumerate(tokens))


@pytest.fixture(scope="module")
def merges(tokenizer):
    """GPT-2's merges, worked back from the ranks: its lines in GPT-2's spelling."""
    tokens = [tokenizer.token_bytes(n) for n in range(50256)]
    spelling = {byte: character for character, byte in byte_of_character().items()}
    ranks = {token: rank for rank, token in enumerate(tokens)}

    def halves(token):
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:  # undo the merge: make all those before it
            pairs = [ranks.get(a + b, VOCAB_SIZE) for a, b in pairwise(parts)]
            at = pairs.index(min(pairs))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return " ".join("".join(spelling[byte] for byte in part) for part in parts)

    return "\n".join(["#version: 0.2", *map(halves, tokens[256:]), ""])


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("hello world", [31373, 995]),
        ("", []),
        (" ", [220]),
        ("<|user|>\n", [27, 91, 7220, 91, 29, 198]),
        ("<|endoftext|>", [27, 91, 437, 1659, 5239, 91, 29]),
        ("日本語", [33768, 98, 17312, 105, 45739, 252]),
    ],
)
def test_known_ids(tokenizer, text, ids):
    assert tokenizer.encode(text) == ids
    assert tokenizer.decode(ids) == text


@given(st.text())
def test_text_comes_back_and_is_never_a_special_token(text):
    tokenizer = r50k.load_r50k()
    ids = tokenizer.encode(text)
    assert r50k.END_OF_TEXT not in ids
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()


def test_end_of_text_and_padding_are_dropped_and_shown(tokenizer):
    assert tokenizer.decode([31373, 50256, 50257, 50303, 995]) == "hello world"
    assert tokenizer.token_text(50256) == "<|endoftext|>"
    assert tokenizer.token_text(50257) == "⟨50257⟩"
    assert tokenizer.token_text(50303) == "⟨50303⟩"
    assert tokenizer.token_bytes(50303) == b""
    assert all(tokenizer.token_text(n) for n in range(0, 50304, 7))


def test_broken_bytes_become_replacement_characters(tokenizer):
    assert tokenizer.decode(tokenizer.encode("語")[:1]) == "\ufffd"
    assert tokenizer.token_text(tokenizer.encode("語")[0]).startswith("⟨")


def test_without_files_or_download_the_command_is_named(cache):
    with pytest.raises(CheckpointError, match="run `sampling-lab fetch r50k_base`"):
        r50k.load_r50k()


def test_a_local_file_serves(cache, ranks_bytes):
    cache.mkdir()
    (cache / "r50k_base.tiktoken").write_bytes(ranks_bytes)
    assert r50k.load_r50k().encode("hello world") == [31373, 995]


@pytest.mark.parametrize("name", ["vocab.bpe", "merges.txt"])
def test_gpt2s_own_merges_serve_in_either_name(cache, merges, name):
    cache.mkdir()
    (cache / name).write_text(merges, encoding="utf-8")
    assert r50k.load_r50k().encode("hello world") == [31373, 995]


@pytest.mark.parametrize("name", ["r50k_base.tiktoken", "vocab.bpe"])
def test_another_tokenizers_file_is_refused(cache, name):
    cache.mkdir()
    (cache / name).write_text("#version: 0.2\nx y\n")
    with pytest.raises(CheckpointError, match="is not r50k_base"):
        r50k.load_r50k()


def test_tiktokens_own_cache_serves(cache, monkeypatch, tokenizer):
    monkeypatch.setattr(r50k, "_tiktoken_has_it", lambda: True)
    asked = []

    def get_encoding(name):
        asked.append(name)
        return tokenizer._encoding

    monkeypatch.setattr(r50k.tiktoken, "get_encoding", get_encoding)
    assert r50k.load_r50k().encode("hello world") == [31373, 995]
    assert asked == ["r50k_base"]


@pytest.mark.parametrize("outcome", [0, 1, "hangs"])
def test_tiktokens_download_cannot_hang(monkeypatch, outcome):
    def run(command, **options):
        assert options["timeout"] <= 20
        if outcome == "hangs":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return subprocess.CompletedProcess(command, outcome)

    monkeypatch.setattr(r50k.subprocess, "run", run)
    assert r50k._tiktoken_has_it() is (outcome == 0)


@pytest.fixture
def download(monkeypatch, merges):
    """Let merges made here stand in for the download."""
    wanted = []

    def download_file(file, target, *, progress):
        wanted.append(file)
        target.parent.mkdir(exist_ok=True)
        target.write_text(merges, encoding="utf-8")

    monkeypatch.setattr(r50k, "download_file", download_file)
    return wanted


def test_fetch_keeps_gpt2s_merges_and_nothing_else(cache, download):
    path = r50k.fetch(progress=False)
    assert path == cache / "vocab.bpe"
    assert r50k.MERGES.is_at(path) and download == [r50k.MERGES]
    assert list(cache.iterdir()) == [path]
    assert r50k.load_r50k().encode("hello world") == [31373, 995]
    assert r50k.fetch(progress=False) == path  # a second time nothing is downloaded
    assert len(download) == 1


def test_fetch_leaves_the_ranks_of_an_earlier_version(cache, download, ranks_bytes):
    cache.mkdir()
    (cache / "r50k_base.tiktoken").write_bytes(ranks_bytes)
    assert r50k.fetch(progress=False) == cache / "r50k_base.tiktoken"
    assert download == []


@pytest.mark.parametrize("name", ["r50k_base.tiktoken", "vocab.bpe", "merges.txt"])
def test_fetch_puts_a_right_file_in_place_of_a_wrong_one(cache, download, name):
    cache.mkdir()
    (cache / name).write_text("#version: 0.2\nx y\n")
    assert r50k.fetch(progress=False) == cache / "vocab.bpe"
    assert r50k.load_r50k().encode("hello world") == [31373, 995]
    assert list(cache.iterdir()) == [cache / "vocab.bpe"]
