"""Products whose operands are read in place: few rows, few columns, tall matrices."""
