"""Worlds: the environment step, its managers and terms, and the physics beneath them."""
