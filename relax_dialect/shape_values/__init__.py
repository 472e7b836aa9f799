"""What small integer tensors hold, as dimensions: exporters compute shapes by them."""
