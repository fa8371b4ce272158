"""What a model may call in a sandbox: commands and files of the worktree."""
