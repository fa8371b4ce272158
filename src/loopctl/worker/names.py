"""The workers that this version has, by name; looking at a project needs no more of them."""

from typing import Final

COMMAND: Final = "command"
GRAPH: Final = "graph"
WORKERS: Final = frozenset({COMMAND, GRAPH})
"""Those that ``assembly.py`` puts behind these names."""
