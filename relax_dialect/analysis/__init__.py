"""What passes ask about the graph level: which values may share memory, and what ops read and write."""
