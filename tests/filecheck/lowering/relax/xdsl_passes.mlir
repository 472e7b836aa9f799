// RUN: relax-opt %s -p cse | filecheck %s
// RUN: relax-opt %s -p canonicalize | filecheck %s --check-prefix CANON
// RUN: relax-opt %s -p dce | filecheck %s --check-prefix DCE

// xDSL's passes ask ops for their effects, which say what is read, and what is made that somebody writes into.

tir.prim_func @inc[%n](%X: !tir.buffer<[n], f32>) {
}

// Equal ops are one: nobody writes.
// CHECK-LABEL: relax.func @pure
// CHECK-NEXT:    %[[A:.*]] = relax.exp %x
// CHECK-NEXT:    relax.add %[[A]], %[[A]]
relax.func @pure[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %a = relax.exp %x
  %b = relax.exp %x
  %c = relax.add %a, %b
  relax.return %c
}

// What is read before a write and behind it.
// CHECK-LABEL: relax.func @between
// CHECK-NEXT:    relax.exp %x
// CHECK-NEXT:    relax.call_packed
// CHECK-NEXT:    %[[B:.*]] = relax.exp %x
// CHECK-NEXT:    relax.add %[[B]], %[[B]]
// CHECK-NEXT:    relax.tuple
relax.func @between[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %a = relax.exp %x
  relax.call_packed "t.inc"(%x)
  %b = relax.exp %x
  %c = relax.exp %x
  %d = relax.add %b, %c
  %t = relax.tuple(%a, %d)
  relax.return %t
}

// Of two results each has its own memory.
// CHECK-LABEL: relax.func @returned
// CHECK-NEXT:    relax.exp %x
// CHECK-NEXT:    relax.exp %x
relax.func @returned[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %a = relax.exp %x
  %b = relax.exp %x
  %t = relax.tuple(%a, %b)
  relax.return %t
}

// One of two equal tensors, or constants, is written.
// CHECK-LABEL: relax.func @written
// CHECK-NEXT:    relax.exp %x
// CHECK-NEXT:    relax.exp %x
// CHECK-NEXT:    relax.call_tir_inplace
// CHECK-NEXT:    relax.constant
// CHECK-NEXT:    relax.constant
relax.func @written[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %a = relax.exp %x
  %b = relax.exp %x
  %c = relax.call_tir_inplace @inc(%a) inplace [0] : !relax.tensor<[n], f32>
  %d = relax.constant dense<1.0> : tensor<2xf32>
  %e = relax.constant dense<1.0> : tensor<2xf32>
  relax.call_packed "t.inc"(%d)
  %t = relax.tuple(%b, %c, %d, %e)
  relax.return %t
}

// Two permutations with a write between them are not one; without, they are.
// CANON-LABEL: relax.func @permuted
// CANON:         relax.permute_dims %x
// CANON-NEXT:    relax.call_packed
// CANON-NEXT:    relax.permute_dims %y
relax.func @permuted(%x: !relax.tensor<[2, 2], f32>) -> !relax.object impure {
  %y = relax.permute_dims %x axes = [1, 0]
  relax.call_packed "t.inc"(%x)
  %z = relax.permute_dims %y axes = [1, 0]
  relax.return %z
}

// What nothing uses goes, though it reads what is written.
// DCE-LABEL: relax.func @unused
// DCE-NEXT:    relax.call_packed
// DCE-NEXT:    relax.return
relax.func @unused[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %a = relax.exp %x
  %b = relax.add %a, %x
  relax.call_packed "t.inc"(%x)
  relax.return %x
}
