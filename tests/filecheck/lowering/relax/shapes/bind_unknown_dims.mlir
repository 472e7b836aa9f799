// RUN: relax-opt %s -p bind-unknown-dims | filecheck %s
// RUN: relax-opt %s -p bind-unknown-dims,bind-unknown-dims | filecheck %s

// An unknown dimension gets a name where an operator needs it, and later results know it.
// CHECK-LABEL: relax.func @param
// CHECK-NEXT:    %x_1, %s0 = relax.match_cast %x : !relax.tensor<[s0, n], f32> binds [s0]
// CHECK-NEXT:    %0 = relax.exp %x_1
// CHECK-NOT:   :
// CHECK:         %1 = relax.flatten %0
// CHECK-NEXT:    relax.return %1
relax.func @param[%n](%x: !relax.tensor<[_, n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.exp %x : !relax.tensor<[_, n], f32>
  %1 = relax.flatten %0 : !relax.tensor<[_], f32>
  relax.return %1
}

// A name that the function has is not taken again; a value that no operator uses is left alone.
// CHECK-LABEL: relax.func @names
// CHECK-NEXT:    %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[_], f32>
// CHECK-NEXT:    %1, %s0_1 = relax.match_cast %0 : !relax.tensor<[s0_1], f32> binds [s0_1]
// CHECK-NEXT:    %2 = relax.exp %1
// CHECK-NEXT:    %3 = relax.call_pure_packed "f"(%2) : !relax.tensor<[_], f32>
// CHECK-NEXT:    relax.return %3
relax.func @names[%s0](%x: !relax.tensor<[s0], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.call_pure_packed "f"(%x) : !relax.tensor<[_], f32>
  %1 = relax.exp %0
  %2 = relax.call_pure_packed "f"(%1) : !relax.tensor<[_], f32>
  relax.return %2
}

tir.prim_func @copy[%n](%X: !tir.buffer<[n, 2], f32>, %Y: !tir.buffer<[n, 2], f32>) {
}

// The buffers of a PrimFunc say rank and dtype of what is passed for them, and of the shape of a result.
// CHECK-LABEL: relax.func @kernel
// CHECK-NEXT:    %x_1, %s0, %s1 = relax.match_cast %x : !relax.tensor<[s0, s1], f32> binds [s0, s1]
// CHECK-NEXT:    %s_1, %s0_1, %s1_1 = relax.match_cast %s : !relax.shape<[s0_1, s1_1]> binds [s0_1, s1_1]
// CHECK-NEXT:    %0 = relax.call_tir @copy(%x_1) shape(%s_1) : !relax.tensor<[s0_1, s1_1], f32>
// CHECK-NEXT:    relax.return %0
relax.func @kernel(%x: !relax.tensor<*, _>, %s: !relax.shape<*>) -> !relax.tensor<*, f32> {
  %0 = relax.call_tir @copy(%x) shape(%s) : !relax.tensor<*, f32>
  relax.return %0
}

// What a packed function writes may be of any rank.
// CHECK-LABEL: relax.func @packed
// CHECK-NEXT:    %0 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>
// CHECK-NEXT:    relax.return %0
relax.func @packed(%x: !relax.tensor<*, _>, %s: !relax.shape<*>) -> !relax.tensor<*, f32> {
  %0 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>
  relax.return %0
}
