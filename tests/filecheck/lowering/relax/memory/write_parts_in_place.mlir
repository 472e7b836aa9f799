// RUN: relax-opt %s -p write-parts-in-place --split-input-file | filecheck %s
// RUN: relax-opt %s -p write-parts-in-place,write-parts-in-place --split-input-file | filecheck %s
// RUN: relax-opt %s -p write-parts-in-place --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What is joined is computed at its place; of the parameter %x the copy stays.
// CHECK:       tir.prim_func @double_part[%n](%A: !tir.buffer<[n, 2], f32>, %B: !tir.buffer<[n, 6], f32>) {
// CHECK:         %a = tir.load %A[%vi, %vj]
// CHECK-NEXT:    %b = arith.addf %a, %a : f32
// CHECK-NEXT:    %0 = arith.constant 4 : index
// CHECK-NEXT:    %1 = arith.addi %vj, %0 : index
// CHECK-NEXT:    tir.store %b, %B[%vi, %1]
// CHECK:       tir.prim_func @join_rest[%n](%A: !tir.buffer<[n, 4], f32>, %C: !tir.buffer<[n, 6], f32>) {
// CHECK:         tir.block "first"
// CHECK-NOT:     tir.block "second"
// CHECK-LABEL: relax.func @joined
// CHECK-NEXT:    %c = relax.alloc_tensor : !relax.tensor<[n, 6], f32>
// CHECK-NEXT:    relax.call_kernel @double_part(%y, %c) sizes [n]
// CHECK-NEXT:    relax.call_kernel @join_rest(%x, %c) sizes [n]
// CHECK-NEXT:    relax.return %c
// LOC: relax.call_kernel @double_part(%y, %c) sizes [n] loc("{{.*}}":[[# @LINE + 30]]:3)
tir.prim_func @double[%n](%A: !tir.buffer<[n, 2], f32>, %B: !tir.buffer<[n, 2], f32>) {
  %c2 = arith.constant 2 : index
  tir.for (%i, %j) in (%n, %c2) {
    tir.block "double" (%vi = spatial %i in %n, %vj = spatial %j in %c2) {
      %a = tir.load %A[%vi, %vj]
      %b = arith.addf %a, %a : f32
      tir.store %b, %B[%vi, %vj]
    }
  }
}
tir.prim_func @join[%n](%A: !tir.buffer<[n, 4], f32>, %B: !tir.buffer<[n, 2], f32>, %C: !tir.buffer<[n, 6], f32>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  tir.for (%i, %j) in (%n, %c4) {
    tir.block "first" (%vi = spatial %i in %n, %vj = spatial %j in %c4) {
      %a = tir.load %A[%vi, %vj]
      tir.store %a, %C[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%n, %c2) {
    tir.block "second" (%vi = spatial %i in %n, %vj = spatial %j in %c2) {
      %b = tir.load %B[%vi, %vj]
      %k = arith.addi %vj, %c4 : index
      tir.store %b, %C[%vi, %k]
    }
  }
}
relax.func @joined[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 6], f32> force_pure {
  %b = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
  relax.call_kernel @double(%y, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n, 6], f32>
  relax.call_kernel @join(%x, %b, %c) sizes [n]
  relax.return %c
}

// -----

// Not what is read after it was joined, what a kernel uses together with another part, or what might be kept.
// CHECK-LABEL: relax.func @copied
// CHECK-NOT:     _part
tir.prim_func @sum[%n](%A: !tir.buffer<[n, 1], f32>, %B: !tir.buffer<[n, 1], f32>, %C: !tir.buffer<[n, 1], f32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {
    tir.block "sum" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi, %c0]
      %b = tir.load %B[%vi, %c0]
      %c = arith.addf %a, %b : f32
      tir.store %c, %C[%vi, %c0]
    }
  }
}
tir.prim_func @join[%n](%A: !tir.buffer<[n, 1], f32>, %C: !tir.buffer<[n, 2], f32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {
    tir.block "join" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi, %c0]
      tir.store %a, %C[%vi, %c0]
    }
  }
}
relax.func @copied[%n](%x: !relax.tensor<[n, 1], f32>) -> !relax.object impure {
  %a = relax.alloc_tensor : !relax.tensor<[n, 1], f32>
  relax.call_kernel @sum(%x, %x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
  relax.call_kernel @join(%a, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n, 1], f32>
  relax.call_kernel @sum(%a, %x, %c) sizes [n]
  %d = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
  relax.call_packed "keep"(%c)
  relax.call_kernel @join(%c, %d) sizes [n]
  %e = relax.alloc_tensor : !relax.tensor<[n, 1], f32>
  relax.call_kernel @sum(%e, %e, %e) sizes [n]
  %f = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
  relax.call_kernel @join(%e, %f) sizes [n]
  %t = relax.tuple(%b, %d, %f)
  relax.return %t
}

// -----

// A kernel that does more than copy is still called, without the copy; one that only calls others is left alone.
// CHECK-LABEL: tir.prim_func @double_part
// CHECK-LABEL: tir.prim_func @join_rest
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    tir.call @double[%n](%X, %X)
// CHECK-LABEL: relax.func @more
// CHECK-NEXT:    %b = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
// CHECK-NEXT:    relax.call_kernel @double_part(%x, %b) sizes [n]
// CHECK-NEXT:    relax.call_kernel @join_rest(%x, %b) sizes [n]
// CHECK-NEXT:    relax.call_kernel @calls(%x, %b) sizes [n]
tir.prim_func @double[%n](%A: !tir.buffer<[n, 1], f32>, %B: !tir.buffer<[n, 1], f32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {
    tir.block "double" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi, %c0]
      %b = arith.addf %a, %a : f32
      tir.store %b, %B[%vi, %c0]
    }
  }
}
tir.prim_func @join[%n](%A: !tir.buffer<[n, 1], f32>, %X: !tir.buffer<[n, 1], f32>, %C: !tir.buffer<[n, 2], f32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {
    tir.block "join" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi, %c0]
      tir.store %a, %C[%vi, %c0]
    }
  }
  tir.call @double[%n](%X, %X)
}
tir.prim_func @calls[%n](%X: !tir.buffer<[n, 1], f32>, %C: !tir.buffer<[n, 2], f32>) {
  tir.call @double[%n](%X, %X)
}
relax.func @more[%n](%x: !relax.tensor<[n, 1], f32>) -> !relax.object impure {
  %a = relax.alloc_tensor : !relax.tensor<[n, 1], f32>
  relax.call_kernel @double(%x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n, 2], f32>
  relax.call_kernel @join(%a, %x, %b) sizes [n]
  relax.call_kernel @calls(%x, %b) sizes [n]
  relax.return %b
}
