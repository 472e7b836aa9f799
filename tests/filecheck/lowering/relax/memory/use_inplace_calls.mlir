// RUN: relax-opt %s -p use-inplace-calls --split-input-file | filecheck %s
// RUN: relax-opt %s -p use-inplace-calls,use-inplace-calls --split-input-file | filecheck %s
// RUN: relax-opt %s -p use-inplace-calls --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A result has the memory of an operand that is not read again; the first operand is a parameter and stays.
// CHECK:       tir.prim_func @add_inplace[%n](%A: {{.*}}, %C: {{.*}}) {
// CHECK:         tir.load %A[%vi]
// CHECK-NEXT:    tir.load %C[%vi]
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %a = relax.alloc_tensor
// CHECK-NEXT:    relax.call_kernel @add(%x, %x, %a) sizes [n]
// CHECK-NEXT:    relax.call_kernel @add_inplace(%x, %a) sizes [n] {in_place}
// CHECK-NEXT:    relax.call_kernel @add_inplace(%x, %a) sizes [n] {in_place}
// CHECK-NEXT:    relax.return %a
// LOC: relax.call_kernel @add_inplace(%x, %a) sizes [n] {in_place} loc("{{.*}}":[[# @LINE + 15]]:3)
tir.prim_func @add[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>, %C: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "add" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %b = tir.load %B[%vi]
      %c = arith.addf %a, %b : f32
      tir.store %c, %C[%vi]
    }
  }
}
relax.func @chain[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @add(%x, %x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @add(%x, %a, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @add(%x, %b, %c) sizes [n]
  relax.return %c
}

// -----

// Not where the operand is read later, is given twice, may be kept by others, or is read at another place.
// CHECK-LABEL: relax.func @not_in_place
// CHECK-NOT:     in_place
tir.prim_func @turn[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>, %C: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "turn" (%vi = spatial %i in %n) {
      %c1 = arith.constant 1 : index
      %last = arith.subi %n, %c1 : index
      %j = arith.subi %last, %vi : index
      %a = tir.load %A[%j]
      %b = tir.load %B[%vi]
      %c = arith.addf %a, %b : f32
      tir.store %c, %C[%vi]
    }
  }
}
relax.func @not_in_place[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @turn(%x, %x, %a) sizes [n]
  %b = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @turn(%a, %x, %b) sizes [n]
  %c = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @turn(%b, %b, %c) sizes [n]
  relax.call_packed "keep"(%c)
  %d = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @turn(%x, %c, %d) sizes [n]
  %e = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @turn(%x, %d, %e) sizes [n]
  %t = relax.tuple(%d, %e)
  relax.return %t
}

// -----

// What was made outside of a loop is read again in its next turn.
// CHECK-LABEL: relax.func @loop
// CHECK:         relax.call_kernel @exp(%a, %b) sizes [n]
// CHECK-NEXT:    relax.call_kernel @exp_inplace(%b) sizes [n] {in_place}
tir.prim_func @exp[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %a = tir.load %A[%vi]
      %b = math.exp %a : f32
      tir.store %b, %B[%vi]
    }
  }
}
relax.func @loop[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> force_pure {
  %a = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @exp(%x, %a) sizes [n]
  %lower = relax.prim 0
  %upper = relax.prim 3
  %r = relax.for %i = %lower to %upper (%each: !relax.tensor<[n], f32> = %x) {
    %b = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%a, %b) sizes [n]
    %c = relax.alloc_tensor : !relax.tensor<[n], f32>
    relax.call_kernel @exp(%b, %c) sizes [n]
    relax.yield %c
  }
  relax.return %r
}
