// RUN: relax-opt %s -p 'bind-params{func=main w="weight"}' --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'relax.func' op @main has the parameters x, y, got a value for w
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main parameter #1: 'relax.constant' op kept by name expected known dtype and constant dimensions
// CHECK: hint: run 'bind-symbolic-vars' first
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main parameter #0 expected a tensor to bind a weight, got !relax.prim<i64>
relax.func @main(%w: !relax.prim<i64>) -> !relax.prim<i64> {
  relax.return %w
}
