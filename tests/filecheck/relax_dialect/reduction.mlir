// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @reductions[
// CHECK-NEXT:      %0 = relax.sum %x
// CHECK-NEXT:      %1 = relax.sum %i axes = [1]
// CHECK-NEXT:      %2 = relax.prod %x axes = [-1] keepdims
// CHECK-NEXT:      %3 = relax.max %x keepdims
// CHECK-NEXT:      %4 = relax.min %u axes = [1]
// CHECK-NEXT:      %5 = relax.mean %x axes = [0, 1]
// CHECK-NEXT:      %6 = relax.variance %x axes = []
// CHECK-NEXT:      %7 = relax.std %v
// CHECK-NEXT:      %8 = relax.median %v axes = [0] keepdims
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "reductions"
// TYPES: "relax.sum"{{.*}} -> !relax.tensor<[], f32>
// TYPES: "relax.sum"{{.*}} -> !relax.tensor<[n], i64>
// TYPES: "relax.prod"{{.*}} -> !relax.tensor<[n, 1], f32>
// TYPES: "relax.max"{{.*}} -> !relax.tensor<[1, 1], f32>
// TYPES: "relax.min"{{.*}} -> !relax.tensor<[_], f32>
// TYPES: "relax.mean"{{.*}} -> !relax.tensor<[], f32>
// TYPES: "relax.variance"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.std"{{.*}} -> !relax.tensor<[], f32>
// TYPES: "relax.median"{{.*}} -> !relax.tensor<*, f32>
relax.func @reductions[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[n, 4], i64>, %u: !relax.tensor<[_, n], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.sum %x
  %1 = relax.sum %i axes = [1]
  %2 = relax.prod %x axes = [-1] keepdims
  %3 = relax.max %x keepdims = true
  %4 = relax.min %u axes = [1] keepdims = false
  %5 = relax.mean %x axes = [0, 1]
  %6 = relax.variance %x axes = []
  %7 = relax.std %v
  %8 = relax.median %v axes = [0] keepdims
  relax.return %x
}

// CHECK-LABEL: relax.func @running[
// CHECK-NEXT:      %0 = relax.cumsum %x axis = 0 exclusive
// CHECK-NEXT:      %1 = relax.cumsum %u dtype = i64
// CHECK-NEXT:      %2 = relax.cumprod %x
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "running"
// TYPES: "relax.cumsum"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.cumsum"{{.*}} -> !relax.tensor<[_], i64>
// TYPES: "relax.cumprod"{{.*}} -> !relax.tensor<[4 * n], f32>
relax.func @running[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<[_, 4], i32>) -> !relax.object {
  %0 = relax.cumsum %x axis = 0 exclusive
  %1 = relax.cumsum %u dtype = i64
  %2 = relax.cumprod %x
  relax.return %x
}

// As in NumPy, one axis is a number, under either name.
// CHECK-LABEL: relax.func @one_axis[
// CHECK-NEXT: %0 = relax.sum %x axes = [1]
// CHECK-NEXT: %1 = relax.max %x axes = [-1] keepdims
// CHECK-NEXT: %2 = relax.mean %x axes = [0] keepdims
// CHECK-NEXT: %3 = relax.squeeze %1 axes = [1]
// CHECK-NEXT: %4 = relax.expand_dims %x axes = [0]
relax.func @one_axis[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.sum %x axis = 1
  %1 = relax.max %x axes = -1 keepdims
  %2 = relax.mean %x keepdims axis = 0
  %3 = relax.squeeze %1 axis = 1
  %4 = relax.expand_dims %x axis = 0
  relax.return %0
}
