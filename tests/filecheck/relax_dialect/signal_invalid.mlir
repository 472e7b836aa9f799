// RUN: RELAX_INVALID

// CHECK: 'relax.cosine_window' op dtype expected a floating-point dtype, got i32
relax.func @cosine_window_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = [0.5] dtype = i32
  relax.return %x
}

// -----

// CHECK: 'relax.cosine_window' op expected at least one coefficient
relax.func @cosine_window_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = []
  relax.return %x
}

// -----

// CHECK: 'relax.cosine_window' op expected a size that is not negative, got 0 and -n - 1
relax.func @cosine_window_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = -n - 1 coefficients = [0.5]
  relax.return %0
}
