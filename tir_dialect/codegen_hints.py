"""Hints for code generation: annotations of loops and attributes of stores, which the lowerings keep.

Like LLVM's `llvm.loop.*`, beside which those of loops stand, they change no result. What loads compiled code knows them
too, without xDSL.
"""

SCALAR_LOOP = "relax.loop.scalar"
"""The loop is scalar code, which LLVM may vectorise."""

PLAIN_ADDRESSES = "relax.loop.plain_addresses"
"""Addresses are computed as written: LLVM's loop strength reduction is disabled for the module. It would keep an
induction variable for each of them in a register, and takes half of the time of code generation."""

REPEATED_WORK = "relax.loop.repeated_work"
"""Iterations store to the same address, or compute the same values from what they load, so that LLVM's loop-invariant
code motion and promotion pay off. In other loops the lowering has left nothing for them to do."""

STREAMED_FROM = "relax.store.streamed_from"
"""The least size of the whole buffer, in bytes, from which on the store is non-temporal. The store is in a loop that
writes the buffer sequentially, and nobody reads the memory soon."""
