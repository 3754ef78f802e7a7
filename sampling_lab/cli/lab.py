"""Open JupyterLab on the explorer, and say where it is."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MissingPackageError, SamplingLabError

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

NOTEBOOK = "notebooks/05_explorer.ipynb"

_FIRST_PORT = 8888


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampling-lab lab`."""
    parser.usage = "%(prog)s [-h] [--port N] [--no-browser] [-- JUPYTER_ARGUMENT ...]"
    add_server_arguments(parser, _FIRST_PORT)
    parser.add_argument(
        "jupyter", nargs="*", metavar="JUPYTER_ARGUMENT", help="passed to JupyterLab"
    )


def add_server_arguments(parser: argparse.ArgumentParser, first_port: int) -> None:
    """Add what every command that serves a page has.

    Args:
        parser: of the command.
        first_port: the one that is tried first where none is given.
    """
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


def run(args: argparse.Namespace) -> int:
    """Serve JupyterLab until it is stopped; the address is printed first."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise MissingPackageError(
            "JupyterLab is not installed; run pip install 'sampling-lab[lab]'"
        ) from None
    root = find_root(NOTEBOOK)
    check_port(args.port)
    with _no_deprecations():
        server = LabApp.initialize_server([*_arguments(args, root), *args.jupyter])
    # The address is printed here; Jupyter need not repeat it among its messages.
    server.identity_provider.token_generated = False
    # Queued behind the server's own binding of its port, so that it answers by then.
    server.io_loop.add_callback(lambda: announce(address(server), "JupyterLab"))
    server.start()
    return 0


@contextmanager
def _no_deprecations() -> Iterator[None]:
    """Pass on every warning but those that are for Jupyter's own developers."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for warning in caught:
        if not issubclass(warning.category, DeprecationWarning):
            warnings.warn(warning.message, stacklevel=1)


def announce(address: str, what: str) -> None:
    """Print where a server is, as the one line of standard output."""
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    sys.stderr.write(f"{what} is at the address above; Ctrl-C stops it.\n")


def find_root(notebook: str) -> Path:
    """Return the folder with the notebooks: this clone's, or the current one.

    Args:
        notebook: the one that is needed, from that folder.

    Raises:
        SamplingLabError: neither has it, as after installing only the package.
    """
    places = sorted({Path(__file__).parents[2], Path.cwd()})
    for place in places:
        if (place / notebook).is_file():
            return place
    raise SamplingLabError(
        f"there is no {notebook} in {' or '.join(map(str, places))}; run this in a "
        "clone of the project"
    )


def check_port(port: int | None) -> None:
    """See that a server can be had at a port; None and 0 are any free one.

    Raises:
        SamplingLabError: it is in use, or not for everyone.
    """
    with socket.socket() as probe:
        if os.name == "posix":  # where it lets a port be used again, not twice
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port or 0))
        except OSError as error:
            raise SamplingLabError(
                f"port {port} cannot be used ({error.strerror}); choose another one "
                "with --port"
            ) from None


def free_port() -> int:
    """Return a port that nothing uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def has_screen() -> bool:
    """Return whether a browser window can be expected to open."""
    if os.environ.get("CI"):
        return False
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65_535:
        raise argparse.ArgumentTypeError(
            f"must be an integer from 0 to 65535, got {text!r}"
        )
    return port


def _arguments(args: argparse.Namespace, root: Path) -> list[str]:
    arguments = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{NOTEBOOK}",
        "--Application.log_level=WARN",
    ]
    if args.port is not None:
        arguments += [f"--ServerApp.port={args.port}", "--ServerApp.port_retries=0"]
    if args.no_browser or not has_screen():
        arguments.append("--no-browser")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        arguments.append("--allow-root")
    return arguments


def address(server: ServerApp) -> str:
    """Return where the notebook is, with the token that lets a person in."""
    base = server.connection_url.rstrip("/")
    token = server.identity_provider.token
    return f"{base}/lab/tree/{NOTEBOOK}" + (f"?token={token}" if token else "")
