"""Run the command line as `python -m sampling_lab`."""

from .cli.main import main

raise SystemExit(main())
