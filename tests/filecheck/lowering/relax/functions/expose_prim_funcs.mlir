// RUN: relax-opt %s -p expose-prim-funcs --split-input-file | filecheck %s
// RUN: relax-opt %s -p expose-prim-funcs,expose-prim-funcs --split-input-file | filecheck %s

// Symbols that the tensors tell are bound by them; the kernel writes into what it is given.
// CHECK-LABEL: tir.prim_func @double_kernel[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
// CHECK:       relax.func @double[%n](%X: !relax.tensor<[n], f32>, %Y: !relax.tensor<[n], f32>) -> !relax.tuple<> impure {
// CHECK-NEXT:    relax.call_kernel @double_kernel(%X, %Y) sizes [n]
// CHECK-NEXT:    %0 = relax.tuple()
// CHECK-NEXT:    relax.return %0
tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = arith.addf %x, %x : f32
    tir.store %y, %Y[%i]
  }
}

// -----

// Calls follow; a name that is taken is not taken again; what is private cannot be called.
// CHECK-LABEL: tir.prim_func private @zero_kernel(
// CHECK:       tir.prim_func @zero_kernel_1(
// CHECK-NEXT:    tir.call @zero_kernel(%X)
// CHECK:       relax.func @zero(
// CHECK-NEXT:    relax.call_kernel @zero_kernel_1(%X)
// CHECK:       tir.prim_func @twice_kernel(
// CHECK-NEXT:    tir.call @zero_kernel_1(%X)
// CHECK:       relax.func @twice(
tir.prim_func private @zero_kernel(%X: !tir.buffer<[1], f32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  tir.store %zero, %X[%c0]
}
tir.prim_func @zero(%X: !tir.buffer<[1], f32>) {
  tir.call @zero_kernel(%X)
}
tir.prim_func @twice(%X: !tir.buffer<[1], f32>) {
  tir.call @zero(%X)
}

// -----

// A module with functions says itself what can be called.
// CHECK-LABEL: tir.prim_func @kernel(
// CHECK-NOT:   @kernel
// CHECK:       relax.func @main
tir.prim_func @kernel(%X: !tir.buffer<[1], f32>) {
}
relax.func @main() -> !relax.tuple<> {
  %0 = relax.tuple()
  relax.return %0
}

// -----

// What a function calls is public, what only PrimFuncs call stays private.
// CHECK-LABEL: tir.prim_func private @inner(
// CHECK:       tir.prim_func @outer(
tir.prim_func private @inner(%X: !tir.buffer<[1], f32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  tir.store %zero, %X[%c0]
}
tir.prim_func private @outer(%X: !tir.buffer<[1], f32>) {
  tir.call @inner(%X)
}
relax.func @main() -> !relax.tensor<[1], f32> {
  %0 = relax.call_tir @outer() : !relax.tensor<[1], f32>
  relax.return %0
}

// -----

// Strides and offsets that are symbols of nothing else are those of tensors, also where the kernel computes with them.
// CHECK-LABEL: tir.prim_func @strided_kernel[%n, %m](%A: !tir.buffer<[n, m], f32>, %B: !tir.buffer<[n, m], f32>)
// CHECK-NEXT:    %s = tir.dim m
// CHECK:       relax.func @strided[%n, %m](
// CHECK-NEXT:    relax.call_kernel @strided_kernel(%A, %B) sizes [n, m]
tir.prim_func @strided[%n, %m, %s, %t, %o](
    %A: !tir.buffer<[n, m], f32, strides = [s, t], offset = o>, %B: !tir.buffer<[n, m], f32, strides = [s, t]>) {
  tir.for (%i, %j) in (%n, %s) {
    %a = tir.load %A[%i, %j]
    tir.store %a, %B[%i, %j]
  }
}
