"""What a kernel is: stages, their accesses to memory, contractions."""
