"""Passes from tir to tir that take scheduled programs down to plain loops."""
