"""What runs a panel: event loop, redraws, streaming and re-run cells."""
