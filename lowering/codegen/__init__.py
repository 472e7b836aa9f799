"""From the llvm dialect to machine code: LLVM text, optimisation, objects, the cache and the loader."""
