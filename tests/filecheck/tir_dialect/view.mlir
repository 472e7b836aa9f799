// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// Dtype, shape and strides are those of the view's type; its first element may lie behind that of the buffer.
// CHECK-LABEL: tir.prim_func @views
tir.prim_func @views[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  // CHECK: %V = tir.view %X : !tir.buffer<[4 * n, m], i8>
  // CHECK-NEXT: %W = tir.view %X at %n {note} : !tir.buffer<[m], f32>
  // CHECK-NEXT: %S = tir.view %X : !tir.buffer<[n], f32, strides = [m]>
  // CHECK-NEXT: %x = tir.load %W[%c0]
  %c0 = arith.constant 0 : index
  %V = tir.view %X : !tir.buffer<[4 * n, m], i8>
  %W = tir.view %X at %n {note} : !tir.buffer<[m], f32>
  %S = tir.view %X : !tir.buffer<[n], f32, strides = [m]>
  %x = tir.load %W[%c0]
}
