"""Rewrites of TensorIR before code is generated: they keep a kernel's meaning and simplify its structure."""
