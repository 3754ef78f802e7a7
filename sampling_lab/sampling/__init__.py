"""From logits and parameters to one token; nothing here knows a model."""
