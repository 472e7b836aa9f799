"""What a kernel is: stages, places in memory, contractions."""
