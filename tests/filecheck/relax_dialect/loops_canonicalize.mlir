// RUN: relax-opt %s -p canonicalize | filecheck %s

// From n + 2 to n there is nothing to do.
// CHECK-LABEL: relax.func @empty
// CHECK-NEXT:    relax.return %x
relax.func @empty[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %lower = relax.prim n + 2
  %upper = relax.prim n
  %r = relax.for %i = %lower to %upper (%a: !relax.tensor<[n], f32> = %x) {
    %0 = relax.add %a, %a
    relax.yield %0
  }
  relax.return %r
}

// Neither is there from n to n + 2 if one counts down.
// CHECK-LABEL: relax.func @empty_downwards
// CHECK-NEXT:    relax.return %x
relax.func @empty_downwards[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %lower = relax.prim n
  %upper = relax.prim n + 2
  %step = relax.prim -2
  %r = relax.for %i = %lower to %upper step %step (%a: !relax.tensor<[n], f32> = %x) {
    %0 = relax.add %a, %a
    relax.yield %0
  }
  relax.return %r
}

// A loop that may run, and one whose first values are still to be checked.
// CHECK-LABEL: relax.func @stays
// CHECK:         relax.for
// CHECK:         relax.for
relax.func @stays[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %zero = relax.prim 0
  %upper = relax.prim n
  %r = relax.for %i = %zero to %upper (%a: !relax.tensor<[n], f32> = %x) {
    relax.yield %a
  }
  %s = relax.for %i = %zero to %zero (%a: !relax.tensor<[4], f32> = %x) {
    relax.yield %a
  }
  %t = relax.tuple(%r, %s)
  relax.return %t
}
