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
