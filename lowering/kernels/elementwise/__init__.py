"""Elementwise stages that need more than a loop nest: broadcasts, padding, interleaving, transposition."""
