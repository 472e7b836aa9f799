"""StructInfo: the types of relax values, and subtype, join, erasure and matching over them."""
