"""Chains of stages that share rows: softmax, normalisations and the like."""
