"""XSLM checkpoints: a JSON toy GPT with its own byte-pair encoding."""
