"""How operators may be sharded: one file for each family, with the stem that it has in `relax_dialect/ops`."""
