"""These tests need PyTorch, which the compiler does not: without it they are not collected (`make test-torch`)."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["*.py"]
collect_ignore = [] if find_spec("torchvision") else ["test_vision.py", "test_architectures.py"]
