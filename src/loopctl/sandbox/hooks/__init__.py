"""Asks the user's own programs about calls of tools, in the form that Claude Code gives its hooks."""
