"""loop: drive coding agents over a task manifest and land only what a gate has passed."""

__version__ = "0.1.0"
