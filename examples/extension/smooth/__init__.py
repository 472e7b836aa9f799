"""An extension of xdsl-relax; `smooth.extension` registers what it has."""
