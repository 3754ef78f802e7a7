"""What a fresh clone needs: pins, environments, the wheel, make, a quick import."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import stat
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import sampling_lab
from tests.helpers import ROOT, run, run_make, run_python

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


def test_pins_are_exact_and_sorted_and_name_no_address() -> None:
    for line in pin_lines():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*", line), line
    assert pin_lines() == sorted(set(pin_lines()))
    assert PINS["torch"] == "2.13.0"


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_range_is_bounded_and_holds_its_pin(requirement: Requirement) -> None:
    assert any(part.operator == ">=" for part in requirement.specifier)
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def closure() -> Iterator[tuple[str, Requirement]]:
    """Yield (package, requirement) for all direct and indirect requirements."""
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


def test_every_required_package_has_a_pin_that_all_accept() -> None:
    wrong = []
    for asker, requirement in closure():
        pin = PINS.get(canonicalize_name(requirement.name))
        # Some packages pin others themselves, such as torch its CUDA libraries.
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


def test_the_licence_is_complete() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_the_changelog_has_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {sampling_lab.__version__}\n" in changelog
    assert Version(sampling_lab.__version__)


def test_the_wheel_contains_every_file_of_the_package(tmp_path: Path) -> None:
    build = run(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path
    )
    assert build.returncode == 0, build.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {
        name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name
    }
    files = (path for path in ROOT.glob("sampling_lab/**/*") if path.is_file())
    names = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    assert packed == names
    assert {".css", ".j2", ".js", ".py", ".typed"} == {
        "." + name.rpartition(".")[2] for name in packed
    }


# Continuous integration


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert script.rstrip().endswith("\nmake test")
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_public_workflow_runs_the_same_script_without_secrets() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert not re.search("secrets|://", text)
    job = yaml.safe_load(text)["jobs"]["test"]
    *actions, script = job["steps"]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in actions)
    assert f">={actions[-1]['with']['python-version']}" == PROJECT["requires-python"]
    assert script == {"run": ".ci/run"}
    assert job["timeout-minutes"] == 90


def test_a_commit_and_the_tests_run_the_same_checks_as_make_lint() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]
    commands = run_make("lint", "--dry-run", "--old-file=.venv/installed").stdout
    assert re.findall(r"bin/(.+)", commands) == [
        *("ruff check .", "ruff format --check .", "mypy")
    ]
    assert (
        commands in run_make("test", "--dry-run", "--old-file=.venv/installed").stdout
    )


# The import


PICTURES = {"matplotlib", "ipywidgets", "IPython"}
HEAVY = {"torch", "numpy", "transformers", *PICTURES}


@pytest.mark.parametrize(
    ("code", "unneeded"),
    [
        ("import sampling_lab; dir(sampling_lab)", HEAVY),
        ("import sampling_lab.cli.main as c; c.build_parser().format_help()", HEAVY),
        ("from sampling_lab import *", PICTURES),
    ],
)
def test_importing_brings_in_nothing_unneeded(code: str, unneeded: set[str]) -> None:
    said = run_python(f"import sys; {code}; print({unneeded} & {{*sys.modules}})")
    assert said == "set()\n"


def test_editors_see_the_names_that_are_loaded_lazily() -> None:
    source = (ROOT / "sampling_lab/__init__.py").read_text(encoding="utf-8")
    typed = re.findall(r"^    from \.([\w.]+) import (\w+) as \2$", source, re.M)
    assert {"__version__", *(name for _, name in typed)} == {*sampling_lab.__all__}
    for module, name in typed:
        defined = getattr(import_module(f"sampling_lab.{module}"), name)
        assert getattr(sampling_lab, name) is defined
        assert name in dir(sampling_lab)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Temprature'"):
        sampling_lab.Temprature  # noqa: B018


# make


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with what `make setup` reads, and no virtual environment."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_make_alone_lists_its_targets() -> None:
    said = run_make("help").stdout
    for target in ("lab", "test", "bench", "lint", "clean"):
        assert re.search(rf"^make {target} ", said, re.M)


def test_an_old_python_is_refused_in_one_sentence(clone: Path) -> None:
    old = clone / "python3.9"
    pretend = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{pretend}" "$2"\n')
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = run_make("setup", f"PYTHON={old}", cwd=clone)
    first, *rest = done.stderr.splitlines()
    assert first == (
        f"sampling_lab needs Python 3.11 or newer, and {old} is 3.9; install one, or "
        "name it: make PYTHON=/path/to/python3.11"
    )
    assert done.returncode != 0
    assert len(rest) == 1  # make's own line
    assert not (clone / ".venv").exists()


def test_no_python_is_refused_in_one_sentence(clone: Path) -> None:
    done = run_make("setup", "PYTHON=", cwd=clone)
    assert done.returncode != 0
    assert done.stderr.startswith("sampling_lab needs Python 3.11 or newer, and there")


def test_a_finished_setup_is_not_done_again(clone: Path) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv/installed").touch()
    done = run_make("setup", "PYTHON=/nonexistent", cwd=clone)
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
    """Return (page, target) for every link in a page or a notebook to a file."""
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


def test_every_link_leads_to_an_existing_file() -> None:
    links = linked_files()
    assert len(links) > 20
    missing = [
        (page, target)
        for page, target in links
        if not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert missing == []
