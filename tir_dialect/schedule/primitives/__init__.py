"""The primitives, one file per family. Each checks its arguments, then its legality, then makes one edit."""
