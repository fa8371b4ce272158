"""Reaches the servers of tools that the settings name, and makes their tools ours."""
