"""Graph-level passes: from Relax programs to Relax programs."""
