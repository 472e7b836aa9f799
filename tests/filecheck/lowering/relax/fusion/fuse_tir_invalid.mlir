// RUN: relax-opt %s -p fuse-tir --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'relax.exp' op expected a call of a PrimFunc in a group (in @operator)
// CHECK: hint: run 'legalize-ops' first
relax.func @operator[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %y = relax.fused {
    %0 = relax.exp %x
    relax.yield %0
  }
  relax.return %y
}
