"""Run the command line as `python -m sampling_lab`."""

from .cli import main

raise SystemExit(main())
