"""Running sums and products, along rows of memory and across them."""
