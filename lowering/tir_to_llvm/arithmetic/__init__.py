"""Scalar and vector arithmetic: the ops of arith and math, conversions between number formats, sizes."""
