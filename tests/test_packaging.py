"""What a fresh clone rests on: pins, environments, make, and a quick import."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import sampling_lab
from tests.helpers import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def requirements() -> list[Requirement]:
    """Return everything that `.[lab,test]` asks for."""
    extras = PROJECT["optional-dependencies"]
    return [*map(Requirement, PROJECT["dependencies"] + extras["lab"] + extras["test"])]


def pin_lines() -> list[str]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


PINS = {line.split("==")[0]: line.split("==")[1] for line in pin_lines()}


def test_pins_are_exact_sorted_and_name_no_place() -> None:
    for line in pin_lines():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*", line), line
    assert pin_lines() == sorted(set(pin_lines()))
    assert PINS["torch"] == "2.13.0"


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_range_is_bounded_and_holds_its_pin(requirement: Requirement) -> None:
    assert any(part.operator == ">=" for part in requirement.specifier)
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def closure() -> Iterator[tuple[str, Requirement]]:
    """Yield (who asks, what) for all that is needed, however far down."""
    todo = [("sampling-lab", requirement) for requirement in requirements()]
    seen: set[str] = set()
    while todo:
        asker, requirement = todo.pop()
        yield asker, requirement
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        needs = importlib.metadata.requires(requirement.name) or ()
        extras = requirement.extras or {""}
        for need in map(Requirement, needs):
            if applies(need, extras):
                todo.append((requirement.name, need))


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": name}) for name in extras)


def test_every_package_that_is_needed_has_a_pin_that_all_accept() -> None:
    wrong = []
    for asker, requirement in closure():
        pin = PINS.get(canonicalize_name(requirement.name))
        # A package that pins another itself (torch its CUDA libraries) needs no help.
        is_pinned_there = any(part.operator == "==" for part in requirement.specifier)
        accepted = pin is not None and requirement.specifier.contains(pin, True)
        if not accepted and not (pin is None and is_pinned_there):
            wrong.append(f"{asker} needs {requirement}; the pin is {pin}")
    assert not wrong


def test_the_conda_environment_installs_the_same_pins() -> None:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    environment = yaml.safe_load(text)
    assert environment["channels"][0] == "conda-forge"
    *conda, pip = environment["dependencies"]
    assert "pip" in conda
    python = next(line for line in conda if line.startswith("python="))
    assert python == "python=3.11"
    assert f">={python.split('=')[1]}" == PROJECT["requires-python"]

    constraint, editable = pip["pip"]
    assert constraint.split() == ["--constraint", "constraints.txt"]
    option, target = editable.split()
    assert (option, target) == ("--editable", ".[lab,test]")
    installer = (ROOT / "tools/install.py").read_text(encoding="utf-8")
    assert '"--constraint", "constraints.txt", "--editable", ".[lab,test]"' in installer


def test_the_licence_is_whole() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_changelog_knows_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {sampling_lab.__version__}\n" in changelog
    assert Version(sampling_lab.__version__)


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert script.rstrip().endswith("\nmake test")
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


# The import


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = "{'torch', 'matplotlib', 'numpy', 'transformers', 'ipywidgets'}"


@pytest.mark.parametrize(
    "code",
    [
        "import sampling_lab; dir(sampling_lab)",
        "import sampling_lab.cli.main as cli; cli.build_parser().format_help()",
    ],
)
def test_importing_brings_in_nothing_heavy(code: str) -> None:
    assert run_python(f"import sys; {code}; print({HEAVY} & {{*sys.modules}})") == (
        "set()\n"
    )


def test_generating_brings_in_no_plots_or_widgets() -> None:
    heavy = "{'matplotlib', 'ipywidgets', 'IPython'}"
    code = "import sys; from sampling_lab import *; "
    assert run_python(f"{code}print({heavy} & {{*sys.modules}})") == "set()\n"


@pytest.mark.parametrize("name", sampling_lab.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(sampling_lab, name) is not None
    assert name in dir(sampling_lab)


def test_editors_see_the_names_that_are_loaded_lazily() -> None:
    source = (ROOT / "sampling_lab/__init__.py").read_text(encoding="utf-8")
    typed = set(re.findall(r"^    from \.([\w.]+) import (\w+) as \2$", source, re.M))
    assert typed == {(module, name) for name, module in sampling_lab._MODULES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Temprature'"):
        sampling_lab.Temprature  # noqa: B018
    assert (ROOT / "sampling_lab/py.typed").is_file()


# make


def make(target: str, folder: Path, *variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", target, *variables], cwd=folder, capture_output=True, text=True
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with what `make setup` reads, and no virtual environment."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_make_alone_lists_its_targets() -> None:
    said = make("help", ROOT).stdout
    for target in ("lab", "test", "bench", "lint", "clean"):
        assert re.search(rf"^make {target} ", said, re.M)


def test_an_old_python_is_refused_in_one_sentence(clone: Path) -> None:
    old = clone / "python3.9"
    pretend = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{pretend}" "$2"\n')
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = make("setup", clone, f"PYTHON={old}")
    first, *rest = done.stderr.splitlines()
    assert first == (
        f"sampling_lab needs Python 3.11 or newer, and {old} is 3.9; install one, or "
        "name it: make PYTHON=/path/to/python3.11"
    )
    assert done.returncode != 0
    assert len(rest) == 1  # make's own line
    assert not (clone / ".venv").exists()


def test_no_python_is_refused_in_one_sentence(clone: Path) -> None:
    done = make("setup", clone, "PYTHON=")
    assert done.returncode != 0
    assert done.stderr.startswith("sampling_lab needs Python 3.11 or newer, and there")


def test_a_finished_setup_is_not_done_again(clone: Path) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv/installed").touch()
    done = make("setup", clone, "PYTHON=/nonexistent")
    assert (done.returncode, done.stderr) == (0, "")


# The progress display


@pytest.fixture(scope="module")
def installer() -> ModuleType:
    spec = spec_from_file_location("install", ROOT / "tools/install.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_progress_counts_packages_and_megabytes(installer: ModuleType) -> None:
    lines = [
        "Obtaining file:///home/me/clone\n",
        "Collecting typing_extensions>=4.10 (from torch==2.13.0)\n",
        "  Downloading typing_extensions-4.16.0-py3-none-any.whl (44 kB)\n",
        "WARNING: something that nobody needs to read now\n",
        "Processing /wheels/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl\n",
        "Progress 0 of 5493829\n",
        "Progress 5493829 of 5493829\n",
        "Requirement already satisfied: typing-extensions in ./lib (4.16.0)\n",
        "Installing collected packages: typing-extensions, torch\n",
    ]
    assert [*installer.progress(iter(lines), 9)] == [
        "[  1 of 9] typing_extensions",
        "[  2 of 9] torch",
        "[  2 of 9] torch (0 of 5 MB)",
        "[  2 of 9] torch (5 of 5 MB)",
        "[  2 of 9] typing-extensions",
        "[  2 of 9] unpacking them (a minute or so)",
    ]


def test_a_failing_pip_is_heard(
    installer: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = "import sys; print('ERROR: no such package'); sys.exit(3)"
    monkeypatch.setattr(installer, "COMMAND", [sys.executable, "-c", code])
    assert installer.main() == 3
    assert "ERROR: no such package" in capsys.readouterr().err


def linked_files() -> list[tuple[str, str]]:
    """Return every link in a page or a notebook to a file, with where it stands."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("checkpoints/**/*.md")]
    texts = [(path, path.read_text(encoding="utf-8")) for path in pages]
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = [cell for cell in cells if cell["cell_type"] == "markdown"]
        texts += [(path, "".join(cell["source"])) for cell in prose]
    return [
        (str(path.relative_to(ROOT)), target)
        for path, text in texts
        for target in re.findall(r"\]\(([^)#\s]+)\)", text)
        if "://" not in target
    ]


def test_every_link_leads_to_a_file_that_is_there() -> None:
    links = linked_files()
    assert len(links) > 20
    missing = [
        (page, target)
        for page, target in links
        if not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert missing == []
