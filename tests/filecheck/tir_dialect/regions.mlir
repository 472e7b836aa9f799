// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// A view keeps the dimensions of ranges and drops those of points.
// CHECK-LABEL: tir.prim_func @views
tir.prim_func @views[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  // CHECK: %T = tir.match_buffer %X[%c0 to %c16, %c0 to %c16] {note} : !tir.buffer<[16, 16], f32, strides = [m, 1]>
  // CHECK-NEXT: %R = tir.match_buffer %X[%c0, %c0 to %c16] : !tir.buffer<[16], f32>
  // CHECK-NEXT: %C = tir.match_buffer %X[%c0 to %c16, %c0] : !tir.buffer<[16], f32, strides = [m]>
  // CHECK-NEXT: %P = tir.match_buffer %X[%c0, %c0] : !tir.buffer<[], f32>
  %T = tir.match_buffer %X[%c0 to %c16, %c0 to %c16] {note} : !tir.buffer<[16, 16], f32, strides = [m, 1]>
  %R = tir.match_buffer %X[%c0, %c0 to %c16] : !tir.buffer<[16], f32>
  %C = tir.match_buffer %X[%c0 to %c16, %c0] : !tir.buffer<[16], f32, strides = [m]>
  %P = tir.match_buffer %X[%c0, %c0] : !tir.buffer<[], f32>
}

// CHECK-LABEL: tir.prim_func @declarations
tir.prim_func @declarations[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "opaque" (%vi = spatial %i in %n) {
      %c0 = arith.constant 0 : index
      // CHECK: tir.reads %X[%vi, %c0 to %m]
      // CHECK-NEXT: tir.writes %Y[%vi]
      tir.reads %X[%vi, %c0 to %m]
      tir.writes %Y[%vi]
    }
  }
}
