"""The example programs are lit tests too: their RUN lines are the commands of the README."""

import os

config.test_source_root = os.path.dirname(__file__)
lit_config.load_config(config, os.path.join(os.path.dirname(__file__), "..", "tests", "filecheck", "lit.cfg.py"))
config.name = "examples"
config.test_source_root = os.path.dirname(__file__)
# A package of its own, whose tests need it installed: tests/xdsl_relax/test_extension.py runs them.
config.excludes = ["extension"]
