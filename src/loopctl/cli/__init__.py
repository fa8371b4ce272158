"""Speaks: parses words, renders events, chooses the exit code. Holds no decision."""
