"""advanced_indexing"""
