// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// The result is the join of what the branches yield, unless less is written.
// CHECK-LABEL: relax.func @branches[
// CHECK-NEXT:      %r = relax.if %c {
// CHECK-NEXT:        %0 = relax.exp %x
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %y
// CHECK-NEXT:      }
// CHECK-NEXT:      %s, %t = relax.if %p {
// CHECK-NEXT:        relax.yield %x, %c
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %x, %x
// CHECK-NEXT:      } : !relax.tensor<*, f32>, !relax.object
// CHECK-NEXT:      relax.return %r
relax.func @branches[%n, %m](%c: !relax.tensor<[], i1>, %p: !relax.prim<i1>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[_, 4], f32> {
  %r = relax.if %c {
    %0 = relax.exp %x
    relax.yield %0
  } else {
    relax.yield %y
  }
  %s, %t = relax.if %p {
    relax.yield %x, %c
  } else {
    relax.yield %x, %x
  } : !relax.tensor<*, f32>, !relax.object
  relax.return %r
}

// A branch for its effect only.
// CHECK-LABEL: relax.func @effects(%c: !relax.prim<i1>) -> !relax.tuple<> impure {
// CHECK-NEXT:      relax.if %c {
// CHECK-NEXT:        relax.print "yes"()
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      %0 = relax.tuple()
// CHECK-NEXT:      relax.return %0
relax.func @effects(%c: !relax.prim<i1>) -> !relax.tuple<> impure {
  relax.if %c {
    relax.print "yes"()
    relax.yield
  } else {
    relax.yield
  }
  %0 = relax.tuple()
  relax.return %0
}

// A symbol that a branch binds is unknown after it.
// CHECK-LABEL: relax.func @local_symbol(
// CHECK-NEXT:      %r = relax.if %c {
// CHECK-NEXT:        %0, %m = relax.match_cast %x : !relax.tensor<[2 * m], f32> binds [m]
// CHECK-NEXT:        relax.yield %0
// CHECK-NEXT:      } else {
// CHECK-NEXT:        relax.yield %x
// CHECK-NEXT:      }
// CHECK-NEXT:      %s = relax.shape_of %r
// CHECK-NEXT:      relax.return %s
relax.func @local_symbol(%c: !relax.prim<i1>, %x: !relax.tensor<[_], f32>) -> !relax.object {
  %r = relax.if %c {
    %0, %m = relax.match_cast %x : !relax.tensor<[2 * m], f32> binds [m]
    relax.yield %0
  } else {
    relax.yield %x
  }
  %s = relax.shape_of %r
  relax.return %s
}
