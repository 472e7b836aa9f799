// RUN: relax-opt %s -p convert-tir-to-llvm | filecheck %s

// LLVM may vectorise a scalar loop.
// CHECK-LABEL: llvm.func @copy(
// CHECK: llvm.cond_br {{.*}} {llvm_ext.loop = {relax.loop.scalar}}
tir.prim_func @copy[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %a = tir.load %A[%i]
    tir.store %a, %B[%i]
  }
}

// A sum in memory that some iterations add to stays as it is: so does the code beside it.
// CHECK-LABEL: llvm.func @add_some(
// CHECK-NOT: relax.loop.scalar
tir.prim_func @add_some[%n](%A: !tir.buffer<[n], f32>, %S: !tir.buffer<[1], f32>) {
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  tir.for (%i) in (%n) {
    %a = tir.load %A[%i]
    %is = arith.cmpf ogt, %a, %none : f32
    tir.if %is {
      %s = tir.load %S[%zero]
      %t = arith.addf %s, %a : f32
      tir.store %t, %S[%zero]
    }
  }
}
