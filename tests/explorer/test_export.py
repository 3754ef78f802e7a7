"""What the explorer gives away: files, code and its state as plain data."""

from __future__ import annotations

import csv
import json

import pytest

from sampling_lab import SamplingParams
from sampling_lab.generation.branches import Tree
from tests.explorer.panels import alert, generated


def test_saved_files_hold_the_picture_its_table_and_every_text(tmp_path):
    explorer = generated()
    explorer.strip.selected = 0
    explorer.fork()
    explorer.export.folder.value = str(tmp_path / "new" / "folder")
    explorer.save()
    assert str(tmp_path / "new" / "folder" / "table-1.png") in explorer.status.value
    explorer.save()
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    suffixes = ("csv", "json", "png")
    assert names == [f"table-{n}.{suffix}" for n in (1, 2) for suffix in suffixes]
    stem = tmp_path / "new" / "folder" / "table-1"
    assert stem.with_suffix(".png").read_bytes() == explorer.picture.value
    with stem.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = explorer.shown.table
    assert [float(row["final"]) for row in rows] == [row["final"] for row in expected]
    tree = Tree.load(stem.with_suffix(".json"))
    assert [b.generation for b in tree] == [b.generation for b in explorer.branches]


@pytest.mark.parametrize("folder", ["~nobody-has-this-name/x", "a\0b", "x" * 300])
def test_a_folder_that_cannot_exist_is_an_error(folder):
    explorer = generated()
    explorer.export.folder.value = folder
    explorer.save()
    assert "folder must be one that can be written to" in alert(explorer)


def test_nothing_is_saved_where_nothing_can_be_written(tmp_path):
    explorer = generated()
    (tmp_path / "file").write_text("")
    explorer.export.folder.value = str(tmp_path / "file")
    explorer.save()
    assert "folder must be one that can be written to" in alert(explorer)
    explorer.export.folder.value = str(tmp_path / "good")
    explorer.save()
    assert alert(explorer) == ""


def test_without_a_picture_there_is_nothing_to_save(tmp_path):
    explorer = generated()
    explorer.panel.shown = None
    explorer.export.folder.value = str(tmp_path)
    explorer.save()
    assert "there is no picture to save" in alert(explorer)
    assert [*tmp_path.iterdir()] == []


def test_copied_code_is_what_the_session_says_and_goes_with_the_text():
    explorer = generated()
    assert explorer.export.code.layout.display == "none"
    explorer.export.copy_button.click()
    assert explorer.export.code.value == explorer.code("sampling_lab")
    assert explorer.export.code.layout.display == "flex"
    explorer.export.target.value = "cli"
    assert explorer.export.code.value.startswith("sampling-lab generate")
    explorer.params = explorer.params.replace(seed=8)
    assert explorer.export.code.value == ""
    assert explorer.export.code.layout.display == "none"


def test_code_that_cannot_be_had_is_an_error_and_the_next_success_takes_it_away():
    explorer = generated()
    explorer.strip.selected = 1
    explorer.fork()
    explorer.export.target.value = "transformers"
    explorer.copy_code()
    assert "choose the notebook cell" in alert(explorer)
    assert explorer.export.code.value == ""
    explorer.export.target.value = "sampling_lab"
    explorer.copy_code()
    assert alert(explorer) == "" and "fork(" in explorer.export.code.value


def test_the_state_is_what_is_on_the_screen_and_plain_data():
    explorer = generated()
    explorer.tab.value = "Steps"
    explorer.strip.selected = 3
    explorer.strip.measure = "rank"
    state = json.loads(json.dumps(explorer.state, allow_nan=False))
    assert SamplingParams(**state["params"]) == explorer.params
    assert state["text"] == explorer.generation.text
    assert state["token_ids"] == list(explorer.generation.token_ids)
    assert state["title"] == explorer.view().title
    assert state["tab"] == "Steps" and state["selected"] == 3
    assert state["measure"] == "rank" and state["branch"] == 1
    assert state["is_playing"] is False and state["problems"] == []
    explorer.picker.path.value = "nothing/here.json"
    assert "there is no file" in explorer.state["problems"][0]
