"""Functions in LLVM IR by which workers on one machine exchange tensors."""
