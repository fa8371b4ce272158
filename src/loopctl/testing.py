"""Scripted doubles for the ports, shipped so that others can test their own adapters."""
