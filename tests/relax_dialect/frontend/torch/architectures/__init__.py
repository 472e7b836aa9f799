"""Architectures of other packages in small random configurations, as the importer is measured by them.

`python -m tests.relax_dialect.frontend.torch.architectures [NAME ...]` exports each with dynamic sizes, compiles it and
compares it with PyTorch at three sizes. The packages are in `requirements.txt` of this folder.
"""
