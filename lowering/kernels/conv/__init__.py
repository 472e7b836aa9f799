"""Convolutions on channel-blocked layouts: direct and depthwise."""
