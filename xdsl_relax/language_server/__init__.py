"""A language server for MLIR text with our dialects: what an editor shows of a file while it is written."""
