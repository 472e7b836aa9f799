"""What `xdsl_relax.extensions` imports: each of these modules registers something."""

from smooth import backend, converters, ops, passes, rules

__all__ = ["backend", "converters", "ops", "passes", "rules"]
