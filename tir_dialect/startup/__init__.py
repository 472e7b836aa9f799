"""Quick starts: parts of classes that are made on demand, and garbage collection that leaves out what stays."""
