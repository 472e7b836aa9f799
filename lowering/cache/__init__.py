"""What was compiled before, on disk: machine code and whole programs."""
