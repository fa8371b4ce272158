"""Makes the small real project that ``loop demo`` runs on."""
