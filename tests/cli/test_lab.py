"""`sampling-lab lab` and `app`: where they serve, what they print, what they refuse."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from sampling_lab.cli import app, lab
from sampling_lab.errors import MissingPackageError, SamplingLabError
from tests.helpers import ROOT

COMMANDS = {"lab": lab, "app": app}

both = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def parsed(command: ModuleType, *argv: str) -> Namespace:
    parser = ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


# A browser, a user, a port


def arguments(monkeypatch: pytest.MonkeyPatch, **environment: str) -> list[str]:
    for name in ("CI", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    return lab._arguments(Namespace(port=None, no_browser=False), ROOT)


def test_a_browser_opens_only_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--no-browser" in arguments(monkeypatch)
    assert "--no-browser" not in arguments(monkeypatch, DISPLAY=":0")
    assert "--no-browser" not in arguments(monkeypatch, WAYLAND_DISPLAY="wayland-0")
    assert "--no-browser" in arguments(monkeypatch, DISPLAY=":0", CI="true")


@pytest.mark.parametrize("user", [0, 1000])
def test_root_is_allowed_only_for_root(
    user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert ("--allow-root" in arguments(monkeypatch)) == (user == 0)


@both
def test_the_port_is_the_given_one_or_the_environments(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAMPLING_LAB_PORT", raising=False)
    assert parsed(command).port is None
    monkeypatch.setenv("SAMPLING_LAB_PORT", "9123")
    assert parsed(command).port == 9123
    assert parsed(command, "--port", "9124").port == 9124
    for port in (9123, 9124):
        asked = command._arguments(Namespace(port=port, no_browser=True), ROOT)
        assert any(word.endswith(f".port={port}") for word in asked)
        assert any(word.endswith(".port_retries=0") for word in asked)


@both
def test_a_port_that_is_in_use_is_refused_in_one_sentence(command: ModuleType) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SamplingLabError) as refusal:
            command.run(parsed(command, f"--port={port}"))
    assert re.fullmatch(
        rf"port {port} cannot be used \(.+\); choose another one with --port",
        str(refusal.value),
    )


def test_a_free_port_is_free() -> None:
    lab.check_port(lab.free_port())
    lab.check_port(None)


def test_make_serves_both() -> None:
    """As `make lab` and `make app`, after the same preparations."""
    # The tests may have been started by make, which tells a make inside it so.
    outside = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    command = ["make", "--dry-run", "lab", "app"]
    said = subprocess.run(
        command, cwd=ROOT, env=outside, capture_output=True, text=True
    ).stdout
    assert said.endswith("bin/sampling-lab lab\n.venv/bin/sampling-lab app\n")
    assert said.count("sampling-lab fetch --optional smollm2") == 1


# What is missing


@both
def test_without_the_notebooks_it_says_where_it_looked(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "__file__", str(tmp_path / "site/sampling_lab/cli/lab.py"))
    with pytest.raises(SamplingLabError) as refusal:
        command.run(parsed(command))
    assert str(refusal.value).startswith(f"there is no {command.NOTEBOOK} in ")
    assert str(tmp_path) in str(refusal.value)


@pytest.mark.parametrize(
    ("command", "module"), [(lab, "jupyterlab.labapp"), (app, "voila.app")]
)
def test_without_its_server_it_says_what_to_install(
    command: ModuleType, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'sampling-lab\[lab\]'"):
        command.run(parsed(command))


# The servers themselves


def status_of(address: str) -> int:
    """Return the status of an answer, or of the first redirection."""
    opener = urllib.request.build_opener(NoRedirection)
    try:
        with opener.open(address, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@contextmanager
def serving(command: str, notebook: str, clone: Path) -> Iterator[subprocess.Popen]:
    """Run a command over a notebook in a clone of its own, until the block ends."""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": []}
    cells = [{**cell, "execution_count": None, "source": "# secret source\n6 * 7"}]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (clone / "notebooks").mkdir()
    (clone / notebook).write_text(json.dumps(content))
    # The package away from its clone, as an installed one is.
    code = "from sampling_lab.cli import lab, main; "
    code += f"lab.__file__ = {str(clone)!r}; raise SystemExit(main.main())"
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    variables = {name: str(clone / name) for name in folders}
    with subprocess.Popen(
        [sys.executable, "-c", code, command, "--no-browser", "--port=0"],
        cwd=clone,
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server
        finally:
            server.send_signal(signal.SIGTERM)


def test_the_printed_address_opens_the_explorer(tmp_path: Path) -> None:
    with serving("lab", lab.NOTEBOOK, tmp_path) as server:
        address = server.stdout.readline().strip()
        place, token = address.split("?token=")
        assert place.endswith("/lab/tree/notebooks/05_explorer.ipynb")
        assert len(token) >= 32
        contents = place.replace("/lab/tree/", "/api/contents/")
        assert status_of(address) == 200
        assert status_of(f"{contents}?token={token}") == 200
        assert status_of(f"{contents}?token=wrong") == 403
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    assert out == ""
    assert err.startswith("JupyterLab is at the address above; Ctrl-C stops it.\n")
    assert token not in err


def test_the_printed_address_opens_the_explorer_alone(tmp_path: Path) -> None:
    with serving("app", app.NOTEBOOK, tmp_path) as server:
        address = server.stdout.readline().strip()
        place, token = address.split("?token=")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", place)
        assert len(token) >= 32
        assert status_of(place) == 302  # to where a token is asked for
        assert status_of(f"{place}?token=wrong") == 302
        with urllib.request.urlopen(address, timeout=60) as answer:
            page = answer.read().decode()
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=60)
        assert server.returncode == 0
    assert '"text/plain": "42"' in page
    assert "secret source" not in page
    assert out == ""
    assert err.startswith("The explorer is at the address above; Ctrl-C stops it.\n")
    assert token not in err


def test_the_page_names_no_other_server(tmp_path: Path) -> None:
    """No style, script, font or picture of it comes from elsewhere."""
    with serving("app", app.NOTEBOOK, tmp_path) as server:
        with urllib.request.urlopen(server.stdout.readline(), timeout=60) as answer:
            page = answer.read().decode()
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    fetched = (
        r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)|url\(["']?([^"')]+)|import\("(.*?)"""
    )
    found = [next(filter(None, groups), "") for groups in re.findall(fetched, page)]
    assert len(found) > 3
    assert [place for place in found if "//" in place] == []
