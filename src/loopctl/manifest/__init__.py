"""Lists: goal and tasks; reading, writing status back, the frontier."""
