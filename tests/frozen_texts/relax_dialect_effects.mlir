builtin.module {
  relax.func @effects[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>, %p: !relax.prim<i1>) -> !relax.object impure {
    relax.assert %c, "wrong"()
    relax.assert %p, "expected {}, got {}"(%c, %x) {note}
    relax.print "x = {}"(%x)
    relax.return %x
  }
}
