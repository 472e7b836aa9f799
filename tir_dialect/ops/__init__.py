"""The ops of the tir dialect, one file per family."""
