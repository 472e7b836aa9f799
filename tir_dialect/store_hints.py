"""A hint of our own on stores: an attribute that stays until code is generated, and changes no result."""

STREAMED_FROM = "relax.store.streamed_from"
"""If the whole buffer has so many bytes, nobody reads the memory soon: it is written past the caches. The store is one
of a loop that writes the buffer line by line."""
