// RUN: relax-opt %s -p insert-guards | filecheck %s
// RUN: relax-opt %s -p insert-guards,insert-guards | filecheck %s

// What cannot be decided is checked; what is proved is not.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %0 = relax.add %x, %x
// CHECK-NEXT:    %1 = relax.guard %0, broadcast n, m, "dimensions that broadcast"
// CHECK-NEXT:    %2 = relax.add %1, %y
// CHECK-NEXT:    relax.return %2
relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.add %x, %x
  %1 = relax.add %0, %y
  relax.return %1
}

tir.prim_func @half[%n](%X: !tir.buffer<[2 * n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// So are the sizes that a PrimFunc is called with.
// CHECK-LABEL: relax.func @kernel
// CHECK-NEXT:    %x_1 = relax.guard %x, equal 2 * k, m, "dimension 0 of argument #0 (X) of @half"
// CHECK-NEXT:    %0 = relax.call_tir @half(%x_1) : !relax.tensor<[k], f32>
// CHECK-NEXT:    %1 = relax.call_tir @half(%z) : !relax.tensor<[k], f32>
relax.func @kernel[%m, %k](%x: !relax.tensor<[m], f32>, %z: !relax.tensor<[2 * k], f32>) -> !relax.tensor<[k], f32> {
  %0 = relax.call_tir @half(%x) : !relax.tensor<[k], f32>
  %1 = relax.call_tir @half(%z) : !relax.tensor<[k], f32>
  relax.return %0
}

// In a dataflow region the guard is on the earliest value where the symbols are known, not between ops that can be fused.
// CHECK-LABEL: relax.func @region
// CHECK-NEXT:    %gv = relax.dataflow {
// CHECK-NEXT:      %x_1 = relax.guard %x, equal n, m, "equal dimensions besides the axis"
// CHECK-NEXT:      %lv0 = relax.exp %x_1
// CHECK-NEXT:      %lv1 = relax.tanh %lv0
// CHECK-NEXT:      %lv2 = relax.concat %lv1, %y
relax.func @region[%n, %m](%x: !relax.tensor<[3, n], f32>, %y: !relax.tensor<[3, m], f32>) {
  %gv = relax.dataflow {
    %lv0 = relax.exp %x
    %lv1 = relax.tanh %lv0
    %lv2 = relax.concat %lv1, %y axis = 0
    relax.output %lv2
  }
  relax.return %gv
}

// What is made of no tensor is checked before it is used; a size that a tensor has already is not negative.
// CHECK-LABEL: relax.func @sizes
// CHECK:         %0 = relax.zeros %shape dtype = f32
// CHECK-NEXT:    %1 = relax.guard %0, at_most 0, n - 1, "a size that is not negative"
// CHECK-NEXT:    %2 = relax.concat %1, %x
// CHECK:         %3 = relax.full %same, %y
// CHECK-NEXT:    relax.return %3
relax.func @sizes[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[], f32>) -> !relax.tensor<[_], f32> {
  %shape = relax.shape [n - 1]
  %0 = relax.zeros %shape dtype = f32
  %1 = relax.concat %0, %x axis = 0
  %same = relax.shape [n]
  %2 = relax.full %same, %y
  relax.return %2
}
