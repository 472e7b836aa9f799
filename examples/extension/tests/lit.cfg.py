"""The tests of text, run by lit; the tools find the extension as it is installed."""

from xdsl_relax.testing import configure

config.name = "smooth"
configure(config, lit_config, __file__)
