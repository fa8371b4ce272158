"""Expenses from CSV files, added up."""

__version__ = "0.1.0"
