"""Makes tasks: of a goal, of red tests, of history; each a source in front of the one driver."""
