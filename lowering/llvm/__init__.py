"""From the llvm dialect to machine code: LLVM text, optimisation, object files, linking and loading."""
