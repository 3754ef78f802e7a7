"""The widgets that people set things with."""
