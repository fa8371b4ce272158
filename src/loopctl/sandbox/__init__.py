"""Contains: git, worktrees, processes, confinement; the only code that starts processes."""
