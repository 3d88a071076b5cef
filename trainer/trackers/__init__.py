"""Writers that hand a run's metrics to other programs, each fed in a thread of its own."""
