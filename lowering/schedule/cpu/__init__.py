"""Default schedules for CPUs: rules by the structure of a kernel, never by its name."""
