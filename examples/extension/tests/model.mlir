// RUN: relax-run %s --random --print --mode native --seed 1 --no-cache | filecheck %s

// CHECK: output  f32[4]
// CHECK: 0.256
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = smooth.softsign %x
  relax.return %0
}
