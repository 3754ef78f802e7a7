"""What `transformers` loads: a directory, a hub name, or a GGUF file."""
