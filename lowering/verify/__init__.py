"""What a legal module is: SSA dominance, the symbol rule, and the ops that each stage allows."""
