// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @filled[
// CHECK-NEXT:      %s = relax.shape [n, 4]
// CHECK-NEXT:      %p = relax.prim f32 0.5
// CHECK-NEXT:      %0 = relax.full %s, %v
// CHECK-NEXT:      %1 = relax.full %u, %p dtype = f64
// CHECK-NEXT:      %2 = relax.full_like %x, %p
// CHECK-NEXT:      %3 = relax.full_like %x, %v dtype = i8
// CHECK-NEXT:      %4 = relax.zeros %s dtype = f32
// CHECK-NEXT:      %5 = relax.ones %u dtype = i1
// CHECK-NEXT:      %6 = relax.zeros_like %x
// CHECK-NEXT:      %7 = relax.ones_like %x dtype = i64
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "filled"
// TYPES: "relax.shape"{{.*}} -> !relax.shape<[n, 4]>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<f32>
// TYPES: "relax.full"{{.*}} -> !relax.tensor<[n, 4], f16>
// TYPES: "relax.full"{{.*}} -> !relax.tensor<*, f64>
// TYPES: "relax.full_like"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.full_like"{{.*}} -> !relax.tensor<[n, _], i8>
// TYPES: "relax.zeros"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.ones"{{.*}} -> !relax.tensor<*, i1>
// TYPES: "relax.zeros_like"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.ones_like"{{.*}} -> !relax.tensor<[n, _], i64>
relax.func @filled[%n](%x: !relax.tensor<[n, _], f32>, %v: !relax.tensor<[], f16>, %u: !relax.shape<*>) -> !relax.object {
  %s = relax.shape [n, 4]
  %p = relax.prim f32 0.5
  %0 = relax.full %s, %v
  %1 = relax.full %u, %p dtype = f64
  %2 = relax.full_like %x, %p
  %3 = relax.full_like %x, %v dtype = i8
  %4 = relax.zeros %s dtype = f32
  %5 = relax.ones %u dtype = i1
  %6 = relax.zeros_like %x
  %7 = relax.ones_like %x dtype = i64
  relax.return %x
}

// The length of a range of integers is known if the step is.
// CHECK-LABEL: relax.func @ranges[
// CHECK-NEXT:      %a = relax.prim 1
// CHECK-NEXT:      %b = relax.prim n
// CHECK-NEXT:      %c = relax.prim 2
// CHECK-NEXT:      %d = relax.prim -1
// CHECK-NEXT:      %0 = relax.arange %a, %b, %c
// CHECK-NEXT:      %1 = relax.arange %b, %a, %d
// CHECK-NEXT:      %2 = relax.arange %a, %i, %c
// CHECK-NEXT:      %3 = relax.arange %a, %b, %c dtype = f32
// CHECK-NEXT:      %4 = relax.arange %f, %f, %f
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "ranges"
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, 1>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, n>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, 2>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, -1>
// TYPES: "relax.arange"{{.*}} -> !relax.tensor<[floordiv(n, 2)], i64>
// TYPES: "relax.arange"{{.*}} -> !relax.tensor<[max(0, n - 1)], i64>
// TYPES: "relax.arange"{{.*}} -> !relax.tensor<[_], i64>
// TYPES: "relax.arange"{{.*}} -> !relax.tensor<[floordiv(n, 2)], f32>
// TYPES: "relax.arange"{{.*}} -> !relax.tensor<[_], f32>
relax.func @ranges[%n](%x: !relax.tensor<[n], f32>, %f: !relax.prim<f32>, %i: !relax.prim<i64>) -> !relax.object {
  %a = relax.prim 1
  %b = relax.prim n
  %c = relax.prim 2
  %d = relax.prim -1
  %0 = relax.arange %a, %b, %c
  %1 = relax.arange %b, %a, %d
  %2 = relax.arange %a, %i, %c
  %3 = relax.arange %a, %b, %c dtype = f32
  %4 = relax.arange %f, %f, %f
  relax.return %0
}

// CHECK-LABEL: relax.func @matrices[
// CHECK-NEXT:      %0 = relax.tril %x
// CHECK-NEXT:      %1 = relax.triu %x k = n - 1
// CHECK-NEXT:      %2 = relax.eye rows = n columns = 4 dtype = f32
// CHECK-NEXT:      %3 = relax.eye_like %y k = -1 dtype = i8
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "matrices"
// TYPES: "relax.tril"{{.*}} -> !relax.tensor<[2, n, 4], f32>
// TYPES: "relax.triu"{{.*}} -> !relax.tensor<[2, n, 4], f32>
// TYPES: "relax.eye"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.eye_like"{{.*}} -> !relax.tensor<[n, 4], i8>
relax.func @matrices[%n](%x: !relax.tensor<[2, n, 4], f32>, %y: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.tril %x
  %1 = relax.triu %x k = n - 1
  %2 = relax.eye rows = n columns = 4 dtype = f32
  %3 = relax.eye_like %y k = -1 dtype = i8
  relax.return %0
}

// The dtype is f32 if nothing is said.
// CHECK-LABEL: relax.func @windows[
// CHECK-NEXT:      %0 = relax.cosine_window length = n coefficients = [0.5, 0.5]
// CHECK-NEXT:      %1 = relax.cosine_window length = 2 * n + 1 coefficients = [0.42, 0.5, 0.08] periodic dtype = f64
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "windows"
// TYPES: "relax.cosine_window"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.cosine_window"{{.*}} -> !relax.tensor<[2 * n + 1], f64>
relax.func @windows[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = [0.5, 0.5]
  %1 = relax.cosine_window length = 2 * n + 1 coefficients = [0.42, 0.5, 0.08] periodic dtype = f64
  relax.return %x
}

// What is not said is f32 between 0 and 1, or around 0; the shape of the result is that of the operand.
// CHECK-LABEL: relax.func @random[
// CHECK-NEXT:      %0 = relax.random.uniform %seed, %s
// CHECK-NEXT:      %1 = relax.random.uniform %seed, %s low = -1.0 high = 2.5 dtype = f16
// CHECK-NEXT:      %2 = relax.random.normal %t, %s mean = 3.0 scale = 0.5 dtype = f64
// CHECK-NEXT:      %3 = relax.random.normal %seed, %u stream = 7
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "random"
// TYPES: "relax.random.uniform"{{.*}} -> !relax.tensor<[n, 3], f32>
// TYPES: "relax.random.uniform"{{.*}} -> !relax.tensor<[n, 3], f16>
// TYPES: "relax.random.normal"{{.*}} -> !relax.tensor<[n, 3], f64>
// TYPES: "relax.random.normal"{{.*}} -> !relax.tensor<*, f32>
relax.func @random[%n, %k](%seed: !relax.prim<i64>, %t: !relax.prim<i64, k>, %s: !relax.shape<[n, 3]>, %u: !relax.shape<*>) -> !relax.object {
  %0 = relax.random.uniform %seed, %s
  %1 = relax.random.uniform %seed, %s low = -1.0 high = 2.5 dtype = f16
  %2 = relax.random.normal %t, %s mean = 3.0 scale = 0.5 dtype = f64
  %3 = relax.random.normal %seed, %u stream = 7
  relax.return %0
}
