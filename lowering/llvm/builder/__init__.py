"""Building functions and modules of the llvm dialect: constants, common subexpressions, index arithmetic."""
