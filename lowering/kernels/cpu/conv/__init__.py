"""Contractions on channel-blocked layouts, such as direct convolutions."""
