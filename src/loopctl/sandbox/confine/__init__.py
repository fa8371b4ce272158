"""Keeps the processes of a sandbox inside it: what can do that here, and how it is started."""
