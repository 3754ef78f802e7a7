"""train-llm-from-scratch checkpoints of any stage."""
