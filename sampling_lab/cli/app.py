"""Serve the explorer alone, as a page without code, and print its address."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MissingPackageError
from . import lab

if TYPE_CHECKING:
    from tornado.web import RequestHandler
    from voila.app import Voila

NOTEBOOK = "notebooks/app.ipynb"

# Anyone who can reach the port can run the notebook, so a token is required. Errors in
# the notebook are shown on the page: they say what to do. Of JupyterLab's extensions,
# only those that the explorer needs are loaded.
_ARGUMENTS = (
    "--token",
    "--no-browser",
    "--Voila.ip=127.0.0.1",
    "--Voila.log_level=ERROR",
    "--VoilaConfiguration.strip_sources=True",
    "--VoilaConfiguration.show_tracebacks=True",
    "--VoilaConfiguration.template=lab",
    "--VoilaConfiguration.theme=light",
    "--VoilaConfiguration.extension_allowlist=@jupyter-widgets/jupyterlab-manager",
    "--VoilaConfiguration.extension_allowlist=@voila-dashboards/widgets-manager8",
    "--VoilaConfiguration.extension_allowlist=anywidget",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampling-lab app`."""
    lab.add_server_arguments(parser, 8866)


def run(args: argparse.Namespace) -> int:
    """Print the explorer's address and serve it until it is stopped.

    Every page that opens it has its own kernel.
    """
    try:
        from tornado.ioloop import IOLoop
        from voila.app import Voila
    except ImportError:
        raise MissingPackageError(
            "Voila is not installed; run pip install 'sampling-lab[lab]'"
        ) from None
    notebook = lab.find_root(NOTEBOOK) / NOTEBOOK
    port = lab.port_arguments("Voila", args.port)
    server = Voila()
    server.initialize([str(notebook), *_ARGUMENTS, *port])
    # Extends Voila's own template, to leave out what it fetches from other servers.
    server.template_paths.insert(0, str(Path(__file__).with_name("app_page")))
    # Jupyter's ping interval in ms; tornado warns if the timeout is longer than that.
    server.tornado_settings = {"ws_ping_timeout": 30_000}
    server.voila_configuration.prelaunch_hook = _set_cookie
    # The event loop starts once the server listens.
    IOLoop.current().add_callback(_announce, server, lab.opens_browser(args))
    server.start()
    return 0


def _announce(server: Voila, opens_browser: bool) -> None:
    token = server.identity_provider.token
    address = lab.announce(server.connection_url, token, "The explorer")
    if opens_browser:  # Voila itself would open the address without its token
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _set_cookie(handler: RequestHandler, **arguments: object) -> None:
    """Set the cookie with which a page ends its kernel when it is closed.

    Voila does not set it if there is a token, and the kernels would accumulate.
    """
    _ = handler.xsrf_token  # reading it sets the cookie
