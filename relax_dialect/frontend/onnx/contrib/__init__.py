"""Operators that ONNX Runtime adds to the standard, in the domain `com.microsoft`: what its optimiser writes."""
