"""LLVM: its binding, its optimisations and code generation, here, on a thread and in another process."""
