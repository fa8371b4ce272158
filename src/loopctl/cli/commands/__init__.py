"""One file a verb: each parses, calls, renders, exits."""
