"""Evaluation while importing: arithmetic on constants and on shapes, whose elements may be symbolic dimensions."""
