"""Does: executes one step for the engine and forgets."""
