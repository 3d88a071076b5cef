"""The commands, one module a concept; each imports what it needs when it runs."""
