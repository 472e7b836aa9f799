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

// A type or property that names a bound symbol uses the cast, which no value tells: `dce` and `cse` keep it too.
// CHECK-LABEL: relax.func @symbol_is_used
// CHECK-NEXT:    %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:    %1 = relax.shape [k]
// CHECK-NEXT:    relax.return %1
relax.func @symbol_is_used(%x: !relax.tensor<[_], f32>) -> !relax.shape<[_]> {
  %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
  %1 = relax.shape [k]
  relax.return %1
}

// A region that passes the witness on is kept as well.
// CHECK-LABEL: relax.func @symbol_is_passed_on
// CHECK-NEXT:    %k = relax.dataflow {
// CHECK-NEXT:      %0, %l = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:      relax.output %l
// CHECK-NEXT:    }
// CHECK-NEXT:    %1 = relax.shape [k]
// CHECK-NEXT:    relax.return %1
relax.func @symbol_is_passed_on(%x: !relax.tensor<[_], f32>) -> !relax.shape<[_]> {
  %k = relax.dataflow {
    %0, %l = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    relax.output %l
  }
  %1 = relax.shape [k]
  relax.return %1
}

// Where only ops use it that go themselves, the cast goes.
// CHECK-LABEL: relax.func @symbol_is_not_used
// CHECK-NEXT:    relax.return %x
relax.func @symbol_is_not_used(%x: !relax.tensor<[_], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
  %1 = relax.shape [k]
  %2 = relax.if %c {
    %3, %l = relax.match_cast %x : !relax.tensor<[l], f32> binds [l]
    %4 = relax.shape [l]
    relax.yield %4
  } else {
    %5 = relax.shape [3]
    relax.yield %5
  }
  relax.return %x
}
