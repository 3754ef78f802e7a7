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
from tests.helpers import ROOT, run_make

COMMANDS = {"lab": lab, "app": app}

both = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def parsed(command: ModuleType, *argv: str) -> Namespace:
    parser = ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


# A browser and a port


@pytest.mark.parametrize(
    ("environment", "opens"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DISPLAY": ":0", "CI": "true"}, False),
    ],
)
def test_a_browser_opens_only_on_a_screen(
    environment: dict[str, str], opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    assert lab.opens_browser(parsed(lab)) == opens
    assert not lab.opens_browser(parsed(lab, "--no-browser"))


@both
def test_the_port_is_the_given_one_or_the_environments(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAMPLING_LAB_PORT", raising=False)
    assert parsed(command).port is None
    monkeypatch.setenv("SAMPLING_LAB_PORT", "9123")
    assert parsed(command).port == 9123
    assert parsed(command, "--port", "9124").port == 9124


def test_a_server_uses_the_given_port_or_chooses_one() -> None:
    assert lab.port_arguments("Server", None) == []
    port, retries = lab.port_arguments("Server", 0)
    assert re.fullmatch(r"--Server\.port=[1-9]\d*", port)
    number = int(port.rpartition("=")[2])
    assert lab.port_arguments("Server", number) == [port, retries]
    assert retries == "--Server.port_retries=0"


@both
def test_a_port_that_is_in_use_is_refused_in_one_sentence(command: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SamplingLabError) as refusal:
            command.run(parsed(command, f"--port={port}"))
    assert re.fullmatch(
        rf"port {port} cannot be used \(.+\); choose another one with --port",
        str(refusal.value),
    )


def test_make_serves_both() -> None:
    """As `make lab` and `make app`, after the same preparations."""
    said = run_make("--dry-run", "lab", "app").stdout
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
    """Serve a notebook from its own clone with a command, until the block ends."""
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
    assert addresses_elsewhere(page) == []
    assert out == ""
    assert err.startswith("The explorer is at the address above; Ctrl-C stops it.\n")
    assert token not in err


def addresses_elsewhere(page: str) -> list[str]:
    """Return the addresses on other servers that a page loads something from."""
    fetched = (
        r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)|url\(["']?([^"')]+)|import\("(.*?)"""
    )
    found = [next(filter(None, groups), "") for groups in re.findall(fetched, page)]
    assert len(found) > 3
    return [place for place in found if "//" in place]
