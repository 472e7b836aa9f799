// RUN: relax-opt %s -p 'bind-symbolic-vars{func=main n=4}' --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'builtin.module' op expected a 'relax.func' or 'tir.prim_func' @main, but the module has none
relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main binds k, got a value for n
relax.func @main[%k](%x: !relax.tensor<[k], f32>) -> !relax.tensor<[k], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.func' op @main expected n in [5, _], got 4
relax.func @main[%n in [5, _]](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}

// -----

// CHECK: 'relax.call' op refers to @main, whose signature would change
// CHECK: hint: run 'inline-functions' first
relax.func private @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.call @main(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call' op refers to @main, whose signature would change
// CHECK: hint: change a copy that nothing refers to
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.call @main(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed
// CHECK: hint: bind other values
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[5], f32> {
  %0 = relax.match_cast %x : !relax.tensor<[5], f32>
  relax.return %0
}

// -----

// CHECK: 'tir.prim_func' op @main has the sizes and parameters m, A, got a value for n
tir.prim_func @main[%m](%A: !tir.buffer<[m], f32>) {
}

// -----

// CHECK: 'tir.call' op refers to @main, whose signature would change
tir.prim_func @main[%n](%A: !tir.buffer<[n], f32>) {
}
tir.prim_func @caller(%A: !tir.buffer<[4], f32>) {
  %c4 = arith.constant 4 : index
  tir.call @main[%c4](%A)
}
