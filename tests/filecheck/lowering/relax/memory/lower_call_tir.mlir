// RUN: relax-opt %s -p lower-call-tir | filecheck %s
// RUN: relax-opt %s -p lower-call-tir,lower-call-tir | filecheck %s
// RUN: relax-opt %s -p lower-call-tir --print-debuginfo | filecheck %s --check-prefix LOC


tir.prim_func @copy[%n, %k](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// The result is made by the caller; sizes are those of the PrimFunc's symbols, in order.
// CHECK-LABEL: relax.func @kernel
// CHECK-SAME:    force_pure
// CHECK-NEXT:    %y = relax.alloc_tensor : !relax.tensor<[4 * m], f32>
// CHECK-NEXT:    relax.call_kernel @copy(%x, %y) sizes [4 * m, m + 1]
// LOC: relax.alloc_tensor : !relax.tensor<[4 * m], f32> loc("{{.*}}lower_call_tir.mlir":
// LOC: relax.call_kernel @copy(%x, %y) sizes [4 * m, m + 1] loc("{{.*}}lower_call_tir.mlir":
// CHECK-NEXT:    relax.return %y
relax.func @kernel[%m](%x: !relax.tensor<[4 * m], f32>) -> !relax.tensor<[4 * m], f32> {
  %y = relax.call_tir @copy(%x) tir_vars [m + 1] : !relax.tensor<[4 * m], f32>
  relax.return %y
}

// A result in place is the argument, which must not overlap another one.
// CHECK-LABEL: relax.func @inplace
// CHECK-NEXT:    relax.check_apart %y, %x, "copy: argument #1 (Y): overlaps argument #0 (X): pass a copy"
// CHECK-NEXT:    relax.call_kernel @copy(%x, %y) sizes [m, 0]
// LOC: relax.check_apart {{.*}} loc("{{.*}}lower_call_tir.mlir":
// CHECK-NEXT:    relax.return %y
relax.func @inplace[%m](%x: !relax.tensor<[m], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> impure {
  %z = relax.call_tir_inplace @copy(%x, %y) inplace [1] tir_vars [0] : !relax.tensor<[m], f32>
  relax.return %z
}

tir.prim_func @either[%n, %k](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) may_alias {
}

// Nothing else is the memory that the function has made, or a constant; a PrimFunc may allow the same memory.
// CHECK-LABEL: relax.func @apart
// CHECK-NOT:     relax.check_apart
relax.func @apart[%m](%x: !relax.tensor<[m], f32>, %y: !relax.tensor<[4], f32>) -> !relax.object impure {
  %c = relax.constant dense<1.0> : tensor<4xf32>
  %0 = relax.call_tir @copy(%x) tir_vars [0] : !relax.tensor<[m], f32>
  %1 = relax.call_tir_inplace @copy(%x, %0) inplace [1] tir_vars [0] : !relax.tensor<[m], f32>
  %2 = relax.call_tir_inplace @copy(%c, %y) inplace [1] tir_vars [0] : !relax.tensor<[4], f32>
  %3 = relax.call_tir_inplace @either(%y, %2) inplace [1] tir_vars [0] : !relax.tensor<[4], f32>
  %4 = relax.tuple(%1, %3)
  relax.return %4
}

// A shape that is only a run-time value is matched, so that the sizes have names.
// CHECK-LABEL: relax.func @packed
// CHECK-NEXT:    %0, %s0 = relax.match_cast %s : !relax.shape<[s0]> binds [s0]
// CHECK-NEXT:    %y = relax.alloc_tensor : !relax.tensor<[s0], f32>
// CHECK-NEXT:    relax.call_packed "tile"(%x, %y)
// CHECK-NEXT:    relax.return %y
relax.func @packed[%m](%x: !relax.tensor<[m], f32>, %s: !relax.shape<[_]>) -> !relax.tensor<[_], f32> {
  %y = relax.call_dps_packed "tile"(%x) shape(%s) : !relax.tensor<[_], f32>
  relax.return %y
}
