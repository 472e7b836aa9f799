import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
sys.path.insert(0, ROOT)
# The tools are those of this checkout, in the shell too, wherever the installed ones come from.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))

from xdsl_relax.testing import configure

config.name = "xdsl-relax"
configure(config, lit_config, __file__)
