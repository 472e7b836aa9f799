// RUN: relax-opt %s -p find-softsign | filecheck %s

// CHECK-LABEL: @spelt_out
// CHECK-NOT:     relax.divide
// CHECK:         smooth.softsign %x
relax.func @spelt_out[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %one = relax.constant dense<1.0> : tensor<f32>
  %0 = relax.abs %x
  %1 = relax.add %0, %one
  %2 = relax.divide %x, %1
  relax.return %2
}
