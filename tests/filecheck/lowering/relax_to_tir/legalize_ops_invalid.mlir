// RUN: relax-opt %s -p legalize-ops --verify-diagnostics --split-input-file | filecheck %s

// All ops that cannot be legalised are reported at once.
// CHECK: 'relax.exp' op expected known dtypes and dimensions to make a kernel, got !relax.tensor<[_], f32>
// CHECK: hint: run 'bind-unknown-dims' first, or refine the value with 'relax.match_cast'
// CHECK: 'relax.add' op expected known dtypes and dimensions to make a kernel, got !relax.tensor<*, f32>
relax.func @unknown(%x: !relax.tensor<[_], f32>, %y: !relax.tensor<*, f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.exp %x
  %1 = relax.add %y, %y
  relax.return %0
}
