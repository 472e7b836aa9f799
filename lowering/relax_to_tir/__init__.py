"""What each operator computes: one function per op, in the file with the stem of the op's family, written as tensor
expressions.
"""
