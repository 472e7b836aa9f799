"""PrimFuncs of TVMScript: `T` and what stands in `@T.prim_func`."""
