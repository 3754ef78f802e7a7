"""The cache folder, and files that are written as a whole."""

import os

import pytest

from sampling_lab.models.files import cache_folder, scratch_folder, write_whole
from sampling_lab.models.huggingface import gguf
from sampling_lab.models.scratch_llm import tokenizer
from tests import tiny


def test_one_variable_moves_all_that_is_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("SAMPLING_LAB_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    assert tokenizer.directory() == tmp_path / "cache" / "r50k_base"
    tiny.write_gguf(tmp_path / "sunny.gguf")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    made = gguf.converted(tmp_path / "sunny.gguf")
    assert made.parent.parent == tmp_path / "cache"


def test_without_it_the_users_cache_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv("SAMPLING_LAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "sampling_lab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().parts[-2:] == (".cache", "sampling_lab")
    assert cache_folder().is_absolute()


def test_a_scratch_folder_goes_also_after_an_interrupt(tmp_path):
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path) as scratch:
        (scratch / "half").touch()
        assert scratch.parent == tmp_path
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_whole(path, b"old")
    monkeypatch.setattr(os, "replace", None)
    with pytest.raises(TypeError):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    monkeypatch.undo()
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
