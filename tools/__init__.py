"""The command line tools by the names of this folder; they are in `xdsl_relax.cli`, and installed from there alone."""
