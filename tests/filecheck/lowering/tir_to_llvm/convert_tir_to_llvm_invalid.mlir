// RUN: relax-opt %s -p convert-tir-to-llvm --verify-diagnostics --split-input-file | filecheck %s

// A block has to be lowered first.
// CHECK: 'tir.block' op has no lowering to llvm
tir.prim_func @block(%X: !tir.buffer<[], f32>) {
  tir.block "b" {
    %x = tir.load %X[]
    tir.store %x, %X[]
  }
}

// -----

// CHECK: 'tir.call_packed' op is inside a parallel loop
tir.prim_func @packed[%n](%X: !tir.buffer<[n], f32>) {
  tir.for parallel (%i) in (%n) {
    tir.call_packed "f"(%X)
  }
}
