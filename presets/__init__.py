"""Named experiments: TOML files, and the loader that builds an env and a trainer from one."""
