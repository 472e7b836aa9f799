"""Operators of the domain `ai.onnx.ml`: models of tables, as scikit-learn and gradient boosting export them."""
