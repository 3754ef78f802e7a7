"""Open JupyterLab on the explorer, and say where it is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import MissingPackageError, SamplingLabError

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

NOTEBOOK = "notebooks/05_explorer.ipynb"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampling-lab lab`."""
    parser.usage = "%(prog)s [-h] [--port N] [--no-browser] [-- JUPYTER_ARGUMENT ...]"
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        default=os.environ.get("SAMPLING_LAB_PORT"),
        help="default: $SAMPLING_LAB_PORT, else the first free one from 8888",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="only print the address, as without a screen",
    )
    parser.add_argument(
        "jupyter", nargs="*", metavar="JUPYTER_ARGUMENT", help="passed to JupyterLab"
    )


def run(args: argparse.Namespace) -> int:
    """Serve JupyterLab until it is stopped; the address is printed first."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError:
        raise MissingPackageError(
            "JupyterLab is not installed; run pip install 'sampling-lab[lab]'"
        ) from None
    root = find_root()
    server = LabApp.initialize_server(argv=[*_arguments(args, root), *args.jupyter])
    # The address is printed here; Jupyter need not repeat it among its messages.
    server.identity_provider.token_generated = False
    # Queued behind the server's own binding of its port, so that it answers by then.
    server.io_loop.add_callback(_announce, server)
    server.start()
    return 0


def _announce(server: ServerApp) -> None:
    sys.stdout.write(f"{address(server)}\n")
    sys.stdout.flush()
    sys.stderr.write("JupyterLab is at the address above; Ctrl-C stops it.\n")


def find_root() -> Path:
    """Return the folder with the notebooks: this clone's, or the current one.

    Raises:
        SamplingLabError: neither has them, as after installing only the package.
    """
    places = sorted({Path(__file__).parents[1], Path.cwd()})
    for place in places:
        if (place / NOTEBOOK).is_file():
            return place
    raise SamplingLabError(
        f"there is no {NOTEBOOK} in {' or '.join(map(str, places))}; run this in a "
        "clone of the project"
    )


def has_screen() -> bool:
    """Return whether a browser window can be expected to open."""
    if os.environ.get("CI"):
        return False
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True


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
