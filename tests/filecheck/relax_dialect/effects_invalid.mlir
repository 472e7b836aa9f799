// RUN: RELAX_INVALID

// CHECK: 'relax.assert' op condition expected a scalar tensor of i1 or a prim of i1, got !relax.object
relax.func @assert_c1(%x: !relax.object) -> !relax.object impure {
  relax.assert %x, "wrong"()
  relax.return %x
}

// -----

// CHECK: 'relax.assert' op expected 2 values for the marks in its format, got 1
relax.func @assert_c2(%c: !relax.prim<i1>) -> !relax.object impure {
  relax.assert %c, "{} {}"(%c)
  relax.return %c
}

// -----

// CHECK: 'relax.print' op expected 0 values for the marks in its format, got 1
relax.func @print_c1(%x: !relax.object) -> !relax.object impure {
  relax.print "none"(%x)
  relax.return %x
}
