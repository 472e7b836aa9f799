// RUN: relax-opt %s -p flatten-buffers | filecheck %s
// RUN: relax-opt %s -p flatten-buffers,flatten-buffers | filecheck %s

// Places are computed from the strides; a stride of 1 costs nothing.
// CHECK-LABEL: tir.prim_func @rows[%m, %n](%X: !tir.buffer<[m * n], f32>, %Y: !tir.buffer<[n], f32>)
// CHECK:         %[[S:.*]] = tir.dim n
// CHECK-NEXT:    %[[ROW:.*]] = arith.muli %i, %[[S]] : index
// CHECK-NEXT:    %[[PLACE:.*]] = arith.addi %[[ROW]], %j : index
// CHECK-NEXT:    %x = tir.load %X[%[[PLACE]]]
// CHECK-NEXT:    tir.store %x, %Y[%j]
tir.prim_func @rows[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    %x = tir.load %X[%i, %j]
    tir.store %x, %Y[%j]
  }
}

// Strides and offsets of the type are used up; the memory is as large as before.
// CHECK-LABEL: tir.prim_func @strided(%X: !tir.buffer<[36], i8>, %Y: !tir.buffer<[1], i8>)
// CHECK:         %[[OFFSET:.*]] = tir.dim 2
// CHECK:         tir.load %X[%{{.*}}]
// CHECK:         %[[ZERO:.*]] = tir.dim 0
// CHECK-NEXT:    tir.store %x, %Y[%[[ZERO]]]
tir.prim_func @strided(%X: !tir.buffer<[3, 4], i8, strides = [15, 1], offset = 2>, %Y: !tir.buffer<[], i8>) {
  %one = arith.constant 1 : index
  %x = tir.load %X[%one, %one]
  tir.store %x, %Y[]
}

// Vectors in one piece stay vectors; allocations are flat too.
// CHECK-LABEL: tir.prim_func @vectors
// CHECK:         %T = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local">
// CHECK:         %v = tir.load %T[%{{.*}}] : vector<8xf32>
tir.prim_func @vectors() {
  %T = tir.alloc_buffer : !tir.buffer<[4, 8], f32, scope = "local">
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %v = tir.load %T[%one, %zero] : vector<8xf32>
  tir.store %v, %T[%zero, %zero]
}

// What is viewed or passed on keeps its type.
// CHECK-LABEL: tir.prim_func @kept[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>)
tir.prim_func @kept[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %zero = arith.constant 0 : index
  %V = tir.match_buffer %X[%zero, %zero to %n] : !tir.buffer<[n], f32>
  tir.call_extern "look"(%Y)
}

// Callers pass tensors of the rank that the parameters have.
// CHECK-LABEL: tir.prim_func @called[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>)
// CHECK:         relax.call_tir @called(%x)
tir.prim_func @called[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    %x = tir.load %X[%i, %j]
    tir.store %x, %Y[%i, %j]
  }
}
relax.func @main[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
  %0 = relax.call_tir @called(%x) : !relax.tensor<[m, n], f32>
  relax.return %0
}
