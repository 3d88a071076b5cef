"""Watching a trained policy act: the thread that plays, the screen, the table without one."""
