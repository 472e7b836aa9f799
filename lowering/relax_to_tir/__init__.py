"""What each operator computes: one function per op, in the file of the op's family (`kernel.py`), written as
tensor expressions.
"""
