"""Which checkpoints lie in a folder."""

from __future__ import annotations

import shutil

from sampling_lab.models.list_checkpoints import find_folder, list_checkpoints
from tests.helpers import ROOT

XSLM = ROOT / "checkpoints/xslm/model.json"


def test_it_finds_files_and_directories_and_nothing_else(tmp_path):
    (tmp_path / "toy").mkdir()
    shutil.copy(XSLM, tmp_path / "toy" / "model.json")
    (tmp_path / "toy" / "notes.json").write_text('{"a": 1}')
    (tmp_path / "toy" / "broken.pt").write_bytes(b"PK nothing")
    (tmp_path / ".hidden").mkdir()
    shutil.copy(XSLM, tmp_path / ".hidden" / "model.json")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text("{}")
    (tmp_path / "hf" / "model.gguf").write_bytes(b"GGUF")
    names = [str(path.relative_to(tmp_path)) for path in list_checkpoints(tmp_path)]
    assert names == ["hf", "toy/model.json"]


def test_a_link_that_leads_back_up_ends(tmp_path):
    shutil.copy(XSLM, tmp_path / "model.json")
    (tmp_path / "again").symlink_to(tmp_path)
    found = list_checkpoints(tmp_path)
    assert tmp_path / "model.json" in found and len(found) < 10


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert list_checkpoints(tmp_path / "nothing") == []


def test_the_labs_own_are_found_from_the_root_and_from_a_notebook(monkeypatch):
    for place in (ROOT, ROOT / "notebooks"):
        monkeypatch.chdir(place)
        assert find_folder().resolve() == ROOT / "checkpoints"
        assert XSLM in [path.resolve() for path in list_checkpoints()]


def test_far_from_the_clone_its_own_checkpoints_are_still_at_hand(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert XSLM in list_checkpoints()
