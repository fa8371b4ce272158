"""Asks models: routes, retries, prices; the only part that knows LiteLLM."""
