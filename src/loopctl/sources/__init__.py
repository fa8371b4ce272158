"""Task sources: what finds work without a manifest."""
