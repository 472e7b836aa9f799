"""The error of code generation."""


class CodegenError(Exception):
    """An llvm-dialect module that has no LLVM text, text that LLVM rejects, or code that cannot be loaded."""
