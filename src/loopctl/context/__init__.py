"""Shows: what a worker sees: the capsule and the brain that reads and writes it."""
