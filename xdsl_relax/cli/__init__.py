"""Command line tools: they parse arguments and call the rest."""
