"""PPO: the seven stages, their data, their checkpoints and their telemetry."""
