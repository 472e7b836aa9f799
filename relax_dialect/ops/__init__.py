"""The ops of the relax dialect, one file per family."""
