"""tir, vm and scalar arithmetic to the llvm dialect."""
