"""Open JupyterLab on the explorer and print its address."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import warnings
from pathlib import Path

from ..errors import MissingPackageError, SamplingLabError

NOTEBOOK = "notebooks/05_explorer.ipynb"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampling-lab lab`."""
    parser.usage = "%(prog)s [-h] [--port N] [--no-browser] [-- JUPYTER_ARGUMENT ...]"
    add_server_arguments(parser, 8888)
    parser.add_argument(
        "jupyter", nargs="*", metavar="JUPYTER_ARGUMENT", help="passed to JupyterLab"
    )


def add_server_arguments(parser: argparse.ArgumentParser, first_port: int) -> None:
    """Add `--port` and `--no-browser`; the server tries `first_port` by default."""
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        default=os.environ.get("SAMPLING_LAB_PORT"),
        help=f"default: $SAMPLING_LAB_PORT, else the first free one from {first_port}",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="only print the address, as without a screen",
    )


def _port(text: str) -> int:
    if text.isdecimal() and len(text) < 6 and int(text) <= 65_535:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"must be an integer from 0 to 65535, got {text!r}"
    )


def run(args: argparse.Namespace) -> int:
    """Print the address of JupyterLab and serve it until it is stopped."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise MissingPackageError(
            "JupyterLab is not installed; run pip install 'sampling-lab[lab]'"
        ) from None
    arguments = [
        "--allow-root",  # makes a difference only to root, whom Jupyter refuses
        "--Application.log_level=WARN",
        f"--LabApp.default_url=/lab/tree/{NOTEBOOK}",
        f"--ServerApp.root_dir={find_root(NOTEBOOK)}",
        f"--ServerApp.open_browser={opens_browser(args)}",
        *port_arguments("ServerApp", args.port),
    ]
    with warnings.catch_warnings(record=True) as caught:
        server = LabApp.initialize_server([*arguments, *args.jupyter])
    for warning in caught:  # deprecations are for Jupyter's own developers
        if not issubclass(warning.category, DeprecationWarning):
            warnings.warn(warning.message, stacklevel=1)
    identity = server.identity_provider
    identity.token_generated = False  # else Jupyter prints the address once more
    address = f"{server.connection_url}lab/tree/{NOTEBOOK}"
    # Runs after the callback that binds the port, so that the address works.
    server.io_loop.add_callback(announce, address, identity.token, "JupyterLab")
    server.start()
    return 0


def find_root(notebook: str) -> Path:
    """Return the folder that contains a notebook: this clone or the current folder.

    Args:
        notebook: its path, relative to that folder.

    Raises:
        SamplingLabError: neither contains it, as when only the package is installed.
    """
    places = sorted({Path(__file__).parents[2], Path.cwd()})
    for place in places:
        if (place / notebook).is_file():
            return place
    raise SamplingLabError(
        f"there is no {notebook} in {' or '.join(map(str, places))}; run this in a "
        "clone of the project"
    )


def port_arguments(server: str, port: int | None) -> list[str]:
    """Return the arguments that make a server use one port and try no other.

    Args:
        server: its configuration class.
        port: 0 means any free port; None leaves the choice to the server.

    Raises:
        SamplingLabError: the port is in use or reserved.
    """
    if port is None:
        return []
    try:
        with socket.create_server(("127.0.0.1", port)) as probe:
            free = probe.getsockname()[1]
    except OSError as error:
        raise SamplingLabError(
            f"port {port} cannot be used ({error.strerror}); choose another one with "
            "--port"
        ) from None
    return [f"--{server}.port={free}", f"--{server}.port_retries=0"]


def opens_browser(args: argparse.Namespace) -> bool:
    """Return whether to open a browser: it is wanted, and there is a screen."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    needs_one = sys.platform.startswith("linux")
    return not (args.no_browser or os.environ.get("CI") or (needs_one and not screen))


def announce(address: str, token: str, name: str) -> str:
    """Print and return an address with its token, the only line of standard output."""
    if token:
        address += f"?token={token}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    sys.stderr.write(f"{name} is at the address above; Ctrl-C stops it.\n")
    return address
