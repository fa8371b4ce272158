"""Remembers: runs, checkpoints, decisions, events."""
