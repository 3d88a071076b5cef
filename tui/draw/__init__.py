"""Drawing: numbers in, lines of text out. Pure functions that know no terminal and no colours."""
