"""Worlds of other programs, made to fit `trainer.env.Env`, one module a framework."""
