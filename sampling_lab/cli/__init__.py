"""The command line: one command is one library call."""
