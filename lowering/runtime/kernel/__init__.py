"""Functions in LLVM IR that kernels call: threads, workspace, and the memory of large results."""
