// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// The bias is 1 unless it is said.
// CHECK: smooth.softsign %x{{$}}
// CHECK: smooth.softsign %x bias = 2.0
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = smooth.softsign %x
  %1 = smooth.softsign %x bias = 2.0
  %2 = relax.add %0, %1
  relax.return %2
}
