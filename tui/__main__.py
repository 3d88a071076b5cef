"""`python -m tui` is `ppo-tui`."""

from tui.cli import main

main()
