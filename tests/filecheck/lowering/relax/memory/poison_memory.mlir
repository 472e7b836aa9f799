// RUN: relax-opt %s -p poison-memory | filecheck %s

tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// Before it has a value and after its last use, also one by another name, a planned tensor holds NaN.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %s = relax.alloc_storage size 64 * n
// CHECK-NEXT:    %a = relax.storage_tensor %s at 0
// CHECK-NEXT:    relax.call_kernel @poison_1_f32(%a) sizes [n]
// CHECK-NEXT:    relax.call_kernel @copy(%x, %a) sizes [n]
// CHECK-NEXT:    %v = relax.match_cast %a
// CHECK-NEXT:    %b = relax.alloc_tensor
// CHECK-NEXT:    relax.call_kernel @copy(%v, %b) sizes [n]
// CHECK-NEXT:    relax.call_kernel @poison_1_f32(%a) sizes [n]
// CHECK-NEXT:    relax.return %b
relax.func @chain[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> force_pure {
  %s = relax.alloc_storage size 64 * n
  %a = relax.storage_tensor %s at 0 : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %a) sizes [n]
  %v = relax.match_cast %a : !relax.tensor<[n], f32>
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%v, %b) sizes [n]
  relax.return %b
}

// CHECK-LABEL: tir.prim_func @poison_1_f32[%d0]
// CHECK:         arith.constant 0x7fc00000 : f32
