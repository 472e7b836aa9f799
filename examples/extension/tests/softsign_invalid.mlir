// RUN: relax-opt %s --split-input-file --verify-diagnostics

relax.func @softsign_c1(%x: !relax.tensor<[2], i32>) -> !relax.tensor<[2], i32> {
  // expected-error@+1 {{'smooth.softsign' op operand #0 expected a floating-point dtype, got i32}}
  %0 = smooth.softsign %x
  relax.return %0
}

// -----

relax.func @softsign_c2(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  // expected-error@+1 {{'smooth.softsign' op expected a bias above 0, got 0.0}}
  %0 = smooth.softsign %x bias = 0.0
  relax.return %0
}
