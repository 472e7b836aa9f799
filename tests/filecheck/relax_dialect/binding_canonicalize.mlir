// RUN: relax-opt %s -p canonicalize | filecheck %s

// Nothing is checked and nothing bound.
// CHECK-LABEL: relax.func @same_type
// CHECK-NEXT:    relax.return %x
relax.func @same_type[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[n], f32>
  relax.return %0
}

// A cast that checks, forgets or binds stays while it is used.
// CHECK-LABEL: relax.func @stays
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[4], f32>
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[_], f32>
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
relax.func @stays[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[4], f32>
  %1 = relax.match_cast %x : !relax.tensor<[_], f32>
  %2, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}

// An unused check may be dropped: a failing program may stop failing.
// CHECK-LABEL: relax.func @unused
// CHECK-NEXT:    relax.return %x
relax.func @unused[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[4], f32>
  relax.return %x
}
