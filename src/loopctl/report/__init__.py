"""Tells: the decisions report and the account of a run, from events alone."""
