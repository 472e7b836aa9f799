"""Command line tools: they parse arguments and call the rest."""

from vm_dialect.process import load_ffi_without_torch

load_ffi_without_torch()
