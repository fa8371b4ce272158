"""The one place where concrete classes meet."""
