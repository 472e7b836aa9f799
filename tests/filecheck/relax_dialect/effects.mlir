// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// Marks in the format stand for values.
// CHECK-LABEL: relax.func @effects[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>, %p: !relax.prim<i1>) -> !relax.object impure {
// CHECK-NEXT:      relax.assert %c, "wrong"()
// CHECK-NEXT:      relax.assert %p, "expected {}, got {}"(%c, %x) {note}
// CHECK-NEXT:      relax.print "x = {}"(%x)
// CHECK-NEXT:      relax.return %x
relax.func @effects[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>, %p: !relax.prim<i1>) -> !relax.object impure {
  relax.assert %c, "wrong"
  relax.assert %p, "expected {}, got {}"(%c, %x) {note}
  relax.print "x = {}"(%x)
  relax.return %x
}
