"""Programs from other systems, as modules of this dialect."""
