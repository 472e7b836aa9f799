"""From relax functions with explicit memory to functions of the virtual machine."""
