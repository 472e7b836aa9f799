"""Layouts: channel-blocked and channels-last data, packed weights."""
