"""Serve the explorer alone, as a page without code, and say where it is."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MissingPackageError
from .lab import (
    add_server_arguments,
    announce,
    check_port,
    find_root,
    free_port,
    has_screen,
)

if TYPE_CHECKING:
    from tornado.web import RequestHandler
    from voila.app import Voila

NOTEBOOK = "notebooks/app.ipynb"

_PAGE = Path(__file__).with_name("app_page")
"""The template of the page: Voila's own, without the addresses of other servers."""

_EXTENSIONS = (
    "@jupyter-widgets/jupyterlab-manager",
    "@voila-dashboards/widgets-manager8",
    "anywidget",
)
"""What the panel needs of JupyterLab's extensions; another might not suit Voila."""

_FIRST_PORT = 8866


_PING_INTERVAL = 30_000
"""That of Jupyter's servers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampling-lab app`."""
    add_server_arguments(parser, _FIRST_PORT)


def run(args: argparse.Namespace) -> int:
    """Serve the explorer until it is stopped; the address is printed first.

    Every page that opens it has a kernel of its own.
    """
    try:
        from tornado.ioloop import IOLoop
        from voila.app import Voila
    except ImportError:
        raise MissingPackageError(
            "Voila is not installed; run pip install 'sampling-lab[lab]'"
        ) from None
    root = find_root(NOTEBOOK)
    check_port(args.port)
    server = Voila()
    server.initialize(_arguments(args, root))
    server.template_paths.insert(0, str(_PAGE))
    # Its default is longer than the interval, and tornado would say so for every page.
    server.tornado_settings = {"ws_ping_timeout": _PING_INTERVAL}
    server.voila_configuration.prelaunch_hook = _let_page_end_its_kernel
    opens = not args.no_browser and has_screen()
    # Done by the loop, which begins when the server listens at its port.
    IOLoop.current().add_callback(_announce, server, opens)
    server.start()
    return 0


def _let_page_end_its_kernel(handler: RequestHandler, **about: object) -> None:
    """Give a page the cookie with which it ends its kernel when it is left.

    Voila itself forgets to, where there is a token, and the kernels would pile up.
    """
    _ = handler.xsrf_token  # reading it sets the cookie


def _announce(server: Voila, opens: bool) -> None:
    place = address(server)
    announce(place, "The explorer")
    if opens:
        threading.Thread(target=webbrowser.open, args=(place,), daemon=True).start()


def _arguments(args: argparse.Namespace, root: Path) -> list[str]:
    """Return Voila's arguments.

    Whoever reaches the port can run the notebook, so a token keeps others out. An
    error in the notebook is shown on the page: it has the next step in it.
    """
    arguments = [
        str(root / NOTEBOOK),
        "--token",
        "--no-browser",
        "--Voila.ip=127.0.0.1",
        "--Voila.log_level=ERROR",
        "--VoilaConfiguration.strip_sources=True",
        "--VoilaConfiguration.show_tracebacks=True",
        "--VoilaConfiguration.template=lab",
        "--VoilaConfiguration.theme=light",
        *(f"--VoilaConfiguration.extension_allowlist={name}" for name in _EXTENSIONS),
    ]
    if args.port is None:
        return [*arguments, f"--Voila.port={_FIRST_PORT}"]
    port = args.port or free_port()  # Voila would not say which one 0 has become
    return [*arguments, f"--Voila.port={port}", "--Voila.port_retries=0"]


def address(server: Voila) -> str:
    """Return where the page is, with the token that lets a person in."""
    return f"{server.connection_url}?token={server.identity_provider.token}"
