"""How operators may be sharded: a file for operators whose rules are alike, as `factors.FILES` lists them."""
