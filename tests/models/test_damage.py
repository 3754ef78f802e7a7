"""Damaged, foreign and hostile files: one table of damage by one of formats."""

import io
import pickle
import random
import re
from itertools import permutations

import pytest
import torch

from sampling_lab import load
from sampling_lab.errors import CheckpointError
from sampling_lab.models.formats import FORMATS as KNOWN
from sampling_lab.models.torch_file import read_torch_file
from tests.formats import FILES, FORMATS, Opens

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n"
DAMAGE = {
    "empty": (lambda data: b"", r"is empty \(0 bytes\)"),
    "an LFS pointer": (lambda data: LFS, r"Git LFS pointer of 66 bytes.*git lfs pull"),
    "a note": (lambda data: b"notes on a model\n", "."),
    "other bytes": (lambda data: b"\xff\xfe\x00" * 40, "."),
    # `Format.cut_short` says how these are refused.
    "its beginning": (lambda data: data[: len(data) // 10], None),
    "half of it": (lambda data: data[: len(data) // 2], None),
    "all but the end": (lambda data: data[:-20], None),
    "no beginning": (lambda data: data[20:], "."),
}


@pytest.fixture(params=FILES)
def file(request):
    return FILES[request.param]


@pytest.fixture
def path(file, tmp_path):
    """What `load` takes."""
    return file.copy(tmp_path)


@pytest.fixture
def weights(file, path):
    """The file in it that is damaged."""
    return path / file.weights


def refusal(path, **options):
    """Return the sentence with which a file is refused."""
    with pytest.raises(CheckpointError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) <= 600
    return message


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_in_a_sentence(file, path, weights, damage):
    change, problem = DAMAGE[damage]
    weights.write_bytes(change(weights.read_bytes()))
    before = sorted(path.parent.rglob("*"))
    for options in ({}, {"format": file.name}):
        assert re.search(problem or file.cut_short, refusal(path, **options))
    assert sorted(path.parent.rglob("*")) == before


def test_a_bare_pickle_is_refused_and_not_run(file, path, weights, tmp_path):
    weights.write_bytes(pickle.dumps({"model": Opens(tmp_path / "made")}))
    for options in ({}, {"format": file.name}):
        refusal(path, **options)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("kind", ["scratch_llm", "kimi_k3", "bin"])
def test_a_pickle_that_would_run_code_is_refused_by_name(kind, tmp_path):
    path, marker = FILES[kind].copy(tmp_path), tmp_path / "made"
    weights = path / FILES[kind].weights
    content = {**read_torch_file(weights), "metrics": {"loss": [Opens(marker)]}}
    saved = io.BytesIO()  # not the file, to which `content` is still mapped
    torch.save(content, saved)
    weights.write_bytes(saved.getvalue())
    formats = ["huggingface"] if kind == "bin" else KNOWN
    for format in (None, *formats):
        assert "asks for posix.mkdir" in refusal(path, format=format)
    assert not marker.exists()


@pytest.mark.filterwarnings("ignore:.*in the settings|.*not used")  # a name of XSLM
def test_flipped_bits_give_a_model_or_a_sentence(file, path, weights):
    """Most of them lie in the weights, where only an archive has a checksum."""
    data, dice = weights.read_bytes(), random.Random(1)
    places = [*range(0, 64, 9), *dice.choices(range(len(data)), k=12), len(data) - 9]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << dice.randrange(8)
        weights.write_bytes(changed)
        try:
            load(path)
        except CheckpointError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("kind", ["scratch_llm", "kimi_k3", "bin"])
def test_a_flipped_bit_in_weights_is_told_by_the_archive(kind, tmp_path):
    path = FILES[kind].copy(tmp_path)
    weights = path / FILES[kind].weights
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    assert "CRC" in refusal(path)


@pytest.mark.parametrize(("name", "format"), [*permutations(KNOWN, 2)])
def test_a_file_of_another_format_is_named_with_the_one_that_fits(name, format):
    path = FORMATS[name].existing()
    assert f"format='{name}'" in refusal(path, format=format)


def test_a_gguf_is_no_file_of_the_others(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"GGUF\x03\0\0\0" + bytes(64))
    for format in ("xslm", "scratch_llm", "kimi_k3"):
        with pytest.raises(CheckpointError, match=r"\.gguf.*format='huggingface'"):
            load(path, format=format)
