"""One step of the model worker: the cycle of asking a model and running what it calls."""
