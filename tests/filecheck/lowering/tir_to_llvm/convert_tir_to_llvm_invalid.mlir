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

// -----

// A graph cannot call LLVM functions.
// CHECK: 'relax.call_tir' op names @copy, which would become an LLVM function
// CHECK: hint: run 'relax-to-vm' before
tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.call_tir @copy(%x) : !relax.tensor<[n], f32>
  relax.return %0
}
