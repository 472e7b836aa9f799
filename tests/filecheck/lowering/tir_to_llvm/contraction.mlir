// RUN: relax-opt %s -p "convert-tir-to-llvm{vector_bits=256}" --split-input-file | filecheck %s

// Neither a product from which another is subtracted nor one to which the opposite is added becomes a multiply-add: of
// equal numbers both are 0.
// CHECK-LABEL: llvm.func @differences
// CHECK:         %d = llvm.fsub %xx, %yy : f32
// CHECK:         %e = llvm.fadd %xx, %opposite : f32
// CHECK:         %f = llvm.fsub %z, %yy : f32
// CHECK:         %g = llvm.fadd %z, %opposite : f32
tir.prim_func @differences(%X: !tir.buffer<[8], f32>, %Y: !tir.buffer<[8], f32>, %Z: !tir.buffer<[8], f32>, %R: !tir.buffer<[8, 4], f32>) {
  %eight = arith.constant 8 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  tir.for (%i) in (%eight) {
    %x = tir.load %X[%i]
    %y = tir.load %Y[%i]
    %z = tir.load %Z[%i]
    %xx = arith.mulf %x, %x : f32
    %yy = arith.mulf %y, %y : f32
    %d = arith.subf %xx, %yy : f32
    tir.store %d, %R[%i, %zero]
    %negative = arith.negf %y : f32
    %opposite = arith.mulf %negative, %y : f32
    %e = arith.addf %xx, %opposite : f32
    tir.store %e, %R[%i, %one]
    %f = arith.subf %z, %yy : f32
    tir.store %f, %R[%i, %two]
    %g = arith.addf %z, %opposite : f32
    tir.store %g, %R[%i, %three]
  }
}

// -----

// An operator that writes over its operand rounds the same as one that does not.
// CHECK-LABEL: llvm.func @in_place
// CHECK:         %s = llvm.fadd %z, %p : f32
tir.prim_func @in_place[%n, %m](%X: !tir.buffer<[n, m], f32>, %Z: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    %x = tir.load %X[%i, %j]
    %z = tir.load %Z[%i, %j]
    %p = arith.mulf %x, %x : f32
    %s = arith.addf %z, %p : f32
    tir.store %s, %Z[%i, %j]
  }
}

// -----

// A sum over iterations of a loop, in memory of the caller or of the kernel, and sums of several products.
// CHECK-LABEL: llvm.func @sums
// CHECK:         %s = llvm.fadd %z, %p {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK:         %t = llvm.fadd %p, %local {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK:         %u = llvm.fadd %t, %q {fastmathFlags = #llvm.fastmath<contract>} : f32
tir.prim_func @sums[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[m], f32>, %Z: !tir.buffer<[n], f32>) {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  tir.for (%i) in (%n) {
    %T = tir.alloc_buffer : !tir.buffer<[1], f32, scope = "local">
    tir.store %nothing, %T[%zero]
    tir.for (%j) in (%m) {
      %x = tir.load %X[%i, %j]
      %y = tir.load %Y[%j]
      %z = tir.load %Z[%i]
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      tir.store %s, %Z[%i]
      %local = tir.load %T[%zero]
      %t = arith.addf %p, %local : f32
      %q = arith.mulf %y, %y : f32
      %u = arith.addf %t, %q : f32
      tir.store %u, %T[%zero]
    }
  }
}

// -----

// Steps of a sum without a loop, by Horner's rule, and of a loop that carries the sum.
// CHECK-LABEL: llvm.func @steps
// CHECK:         %s = llvm.fadd %z, %p {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK:         %u = llvm.fadd %t, %p {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK:         %h = llvm.fadd %p, %two {fastmathFlags = #llvm.fastmath<contract>} : f32
tir.prim_func @steps(%X: !tir.buffer<[1], f32>, %Z: !tir.buffer<[1], f32>, %H: !tir.buffer<[1], f32>) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %x = tir.load %X[%zero]
  %p = arith.mulf %x, %x : f32
  %z = tir.load %Z[%zero]
  %s = arith.addf %z, %p : f32
  tir.store %s, %Z[%zero]
  %t = tir.load %Z[%zero]
  %u = arith.addf %t, %p : f32
  tir.store %u, %Z[%zero]
  %h = arith.addf %p, %two : f32
  tir.store %h, %H[%zero]
}
