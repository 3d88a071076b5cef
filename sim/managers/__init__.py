"""The managers: each owns the terms of one kind and the buffers these need."""
