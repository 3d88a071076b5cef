"""What this machine brings to a training, found without starting one."""
