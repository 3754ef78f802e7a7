"""Call transformers without any output, and leave all global state as it was."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet(progress: bool = False) -> Iterator[None]:
    """Silence transformers' notices and bars, and restore what its calls change.

    Restored afterwards: the library's verbosity and progress bars, torch's default
    dtype and the state of its CPU generator (a model being built may draw from it).
    Errors still reach the caller as exceptions.

    Args:
        progress: leave the progress bars on.
    """
    import torch  # here, not above: looking at a converted file needs neither
    from transformers.utils import logging as library

    verbosity, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    dtype = torch.get_default_dtype()
    library.set_verbosity(logging.ERROR)
    _show_bars(library, progress)
    try:
        with torch.random.fork_rng(devices=[]), _gguf_bar(progress):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
    finally:
        torch.set_default_dtype(dtype)
        library.set_verbosity(verbosity)
        _show_bars(library, bars)


def _show_bars(library: Any, show: bool) -> None:
    if show:
        library.enable_progress_bar()
    else:
        library.disable_progress_bar()


@contextmanager
def _gguf_bar(progress: bool) -> Iterator[None]:
    """Set the GGUF reader's own bar, which ignores the library's switch."""
    from transformers import modeling_gguf_pytorch_utils as reader

    def bar(iterable: Any, **options: Any) -> Any:
        options["desc"] = "Converting GGUF"
        return original(iterable, disable=not progress, **options)

    names = vars(reader)
    original = names["tqdm"]
    names["tqdm"] = bar
    try:
        yield
    finally:
        names["tqdm"] = original
