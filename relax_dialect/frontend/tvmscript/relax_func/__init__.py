"""Functions of relax in TVMScript: `R` and what stands in `@R.function`."""
