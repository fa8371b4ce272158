"""Decides: the driver, the plan loop, termination, progress, forks, landing, recovery."""
