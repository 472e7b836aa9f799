"""Products of numbers that share a word, by the sums of products that machines have for them."""
