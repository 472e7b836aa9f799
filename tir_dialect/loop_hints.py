"""Hints of our own on loops: annotations that stay until code is generated, which is where they are followed.

They stand beside LLVM's `llvm.loop.*`, and as those they change no result.
"""

SCALAR_LOOP = "relax.loop.scalar"
"""The loop has no vectors, and LLVM may find some."""

PLAIN_ADDRESSES = "relax.loop.plain_addresses"
"""Addresses are computed as they are written. LLVM's strength reduction of loops, which is left out for the module,
would count every one of them up in a register of its own, and takes half of the time of code generation."""

REPEATED_WORK = "relax.loop.repeated_work"
"""Turns write to the same place in memory, or compute the same from what they read: if nothing else is there, LLVM has
it done once. Other loops are written so that little is left to do."""
