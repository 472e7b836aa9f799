"""What each op of the vm dialect becomes."""
