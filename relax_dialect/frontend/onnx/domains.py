"""Domains of operators: that of the standard, and that of ONNX Runtime."""

DEFAULT_DOMAINS = ("", "ai.onnx")
"""The names of the standard's domain."""

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds."""

IMPLIED = {MICROSOFT: 1}
"""Versions of domains that models need not name, as ONNX Runtime does not ask for them."""
