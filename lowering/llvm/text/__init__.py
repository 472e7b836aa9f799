"""Modules of the llvm dialect as the text of LLVM IR."""
