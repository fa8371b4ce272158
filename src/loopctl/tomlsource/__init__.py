"""Where the values of a TOML file stand in its text, and what to say when one of them is wrong."""
