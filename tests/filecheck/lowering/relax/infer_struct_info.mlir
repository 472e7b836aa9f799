// RUN: relax-opt %s -p infer-struct-info | filecheck %s
// RUN: relax-opt %s -p infer-struct-info,infer-struct-info | filecheck %s
// RUN: relax-opt %s -p infer-struct-info --print-debuginfo | filecheck %s --check-prefix LOC

// Results follow from operands, through dataflow regions and tuples, up to the result of the function.
// CHECK-LABEL: relax.func @straight
// CHECK-SAME:    -> !relax.tensor<[m * n], f32>
// CHECK:         %a = relax.exp %x
// CHECK-NEXT:    %b = relax.flatten %a
// CHECK-NEXT:    %t = relax.tuple(%b, %a)
// CHECK:         %c = relax.tuple_get %r[0]
// CHECK-NEXT:    relax.match_cast %c : !relax.tensor<[m * n], f32>
// CHECK-NEXT:    relax.return %c
// LOC: relax.exp %x loc("{{.*}}infer_struct_info.mlir":
relax.func @straight[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<*, _> {
  %r = relax.dataflow {
    %a = relax.exp %x : !relax.tensor<[_, _], f32>
    %b = relax.flatten %a : !relax.tensor<[_], f32>
    %t = relax.tuple(%b, %a) : !relax.tuple<!relax.object, !relax.object>
    relax.output %t
  }
  %c = relax.tuple_get %r[0] : !relax.object
  %d = relax.match_cast %c : !relax.tensor<[_], f32>
  relax.return %c
}

// A match_cast keeps what it says and gets what it leaves open.
// CHECK-LABEL: relax.func @match_cast
// CHECK:         relax.match_cast %x : !relax.tensor<[k, m], f32> binds [k]
// CHECK:         relax.match_cast %x : !relax.tensor<[n, m], f32>
relax.func @match_cast[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<*, f32> {
  %a, %k = relax.match_cast %x : !relax.tensor<[k, _], _> binds [k]
  %b = relax.match_cast %x : !relax.object
  relax.return %a
}

// What only the run time knows does not leave the function; nor is what it declares taken back.
// CHECK-LABEL: relax.func @data_dependent
// CHECK-SAME:    -> !relax.tuple<!relax.tensor<[_], f32>, !relax.tensor<[n], f32>>
relax.func @data_dependent[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.object, !relax.tensor<[n], f32>> {
  %u = relax.unique %x
  %v, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
  %t = relax.tuple(%v, %v)
  relax.return %t
}

// Calls: the result of the callee for these arguments; the callee is refined first.
// CHECK-LABEL: relax.func @calls
// CHECK-SAME:    -> !relax.tensor<[3 * k], f32>
// CHECK:         relax.call @join(%x, %y) : !relax.tensor<[3 * k], f32>
// CHECK-LABEL: relax.func private @join
// CHECK-SAME:    -> !relax.tensor<[m + n], f32>
relax.func @calls[%k](%x: !relax.tensor<[k], f32>, %y: !relax.tensor<[2 * k], f32>) -> !relax.object {
  %z = relax.call @join(%x, %y) : !relax.object
  relax.return %z
}
relax.func private @join[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<*, f32> {
  %z = relax.concat %x, %y
  relax.return %z
}

// Functions that call each other, until nothing changes.
// CHECK-LABEL: relax.func @even
// CHECK-SAME:    -> !relax.tensor<[_], f32>
// CHECK:         relax.call @odd(%x) : !relax.tensor<[_], f32>
// CHECK-LABEL: relax.func @odd
// CHECK-SAME:    -> !relax.tensor<[_], f32>
relax.func @even[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_], _> {
  %0 = relax.call @odd(%x) : !relax.tensor<[_], _>
  %1 = relax.exp %0 : !relax.tensor<[_], _>
  relax.return %1
}
relax.func @odd[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_], _> {
  %0 = relax.call @even(%x) : !relax.tensor<[_], _>
  %1 = relax.add %0, %x : !relax.tensor<[_], _>
  relax.return %1
}

// Branches: what both have in common.
// CHECK-LABEL: relax.func @branches
// CHECK-SAME:    -> !relax.tensor<[_, m], f32>
// CHECK:         } else {
// CHECK:         }
// CHECK-NEXT:    relax.return
relax.func @branches[%n, %m](%x: !relax.tensor<[n, m], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<*, _> {
  %r = relax.if %c {
    %a = relax.concat %x, %x : !relax.tensor<[_, _], f32>
    relax.yield %a
  } else {
    relax.yield %x
  } : !relax.tensor<*, f32>
  relax.return %r
}

// Loops: what each iteration keeps. The first value stays as it is, the second one loses its length.
// CHECK-LABEL: relax.func @loops
// CHECK:         relax.for %i = %zero to %n (%a: !relax.tensor<[4], f32> = %x, %b: !relax.tensor<[_, n], f32> = %y)
// CHECK:           relax.exp %a
// CHECK-NEXT:      relax.concat %b, %b
// CHECK-NEXT:      relax.yield
relax.func @loops[%n](%x: !relax.tensor<[4], f32>, %y: !relax.tensor<[2, n], f32>) -> !relax.object {
  %zero = relax.prim 0
  %r, %s = relax.for %i = %zero to %n (%a: !relax.tensor<*, _> = %x, %b: !relax.tensor<[_, _], _> = %y) {
    %0 = relax.exp %a : !relax.tensor<*, _>
    %1 = relax.concat %b, %b : !relax.tensor<[_, _], _>
    relax.yield %0, %1
  }
  %t = relax.tuple(%r, %s) : !relax.tuple<!relax.object, !relax.object>
  relax.return %t
}

// What holds in the first iteration only is not taken for granted, nor is it an error.
// CHECK-LABEL: relax.func @grows
// CHECK:         relax.while (%k: !relax.tensor<[], i64> = %zero, %a: !relax.tensor<[_], f32> = %x)
// CHECK:         relax.match_cast %a_1 : !relax.tensor<[_], f32>
relax.func @grows(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %zero = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %last, %r = relax.while (%k: !relax.tensor<[], i64> = %zero, %a: !relax.tensor<*, f32> = %x) {
    %c = relax.less %k, %one
    relax.yield %c
  } do (%k, %a) {
    %0 = relax.match_cast %a : !relax.tensor<[_], f32>
    %1 = relax.concat %0, %0
    %2 = relax.add %k, %one
    relax.yield %2, %1
  }
  relax.return %r
}

// CHECK-LABEL: relax.func @later
// CHECK:         relax.for %i = %zero to %two (%a: !relax.tensor<[_], f32> = %x)
// CHECK:         relax.match_cast %a : !relax.tensor<[4], f32>
relax.func @later(%x: !relax.tensor<[2], f32>, %c: !relax.tensor<[], i1>) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %r = relax.for %i = %zero to %two (%a: !relax.tensor<[_], f32> = %x) {
    %0 = relax.if %c {
      %1 = relax.match_cast %a : !relax.tensor<[4], f32>
      relax.yield %1
    } else {
      %2 = relax.concat %a, %a : !relax.tensor<[_], f32>
      relax.yield %2
    }
    relax.yield %0
  }
  relax.return %r
}

// Closures, also when they call themselves.
// CHECK-LABEL: relax.func @closures
// CHECK-SAME:    -> !relax.tensor<[n], f32>
// CHECK:         relax.closure rec %self (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
// CHECK:           relax.call_closure %self(%y)
// CHECK:         relax.call_closure %f(%x)
relax.func @closures[%n](%x: !relax.tensor<[n], f32>, %c: !relax.tensor<[], i1>) -> !relax.object {
  %f = relax.closure rec %self(%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], _> {
    %0 = relax.if %c {
      %1 = relax.call_closure %self(%y)
      %2 = relax.add %1, %y : !relax.tensor<[_], _>
      relax.yield %2
    } else {
      relax.yield %y
    } : !relax.tensor<*, _>
    relax.return %0
  }
  %g = relax.call_closure %f(%x)
  relax.return %g
}

// A shape that is an operand says the dimensions of a destination.
// CHECK-LABEL: relax.func @destinations
// CHECK:         relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<[n, 4], f32>
relax.func @destinations[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_, _], f32> {
  %s = relax.shape [n, 4] : !relax.shape<[_, _]>
  %r = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<[_, _], f32>
  relax.return %r
}

// A function may return a tuple around its own result: only the outer ones are said.
// CHECK-LABEL: relax.func private @nested
// CHECK-SAME:    -> !relax.tuple<!relax.tuple<!relax.tuple<!relax.tuple<!relax.object, !relax.object>, !relax.object>, !relax.object>, !relax.object>
relax.func private @nested(%x: !relax.object) -> !relax.object {
  %0 = relax.call @nested(%x) : !relax.object
  %1 = relax.tuple(%0, %x)
  relax.return %1
}

// So with a function around itself.
// CHECK-LABEL: relax.func private @itself
// CHECK-SAME:    -> !relax.func<(!relax.object) -> !relax.func<(!relax.object) -> !relax.func<(!relax.object) -> !relax.func<(!relax.object) -> !relax.object, pure>, pure>, pure>, pure>
relax.func private @itself(%x: !relax.object, %y: !relax.object) -> !relax.object {
  %0 = relax.make_closure @itself(%x) : !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %0
}

// CHECK-LABEL: relax.func @around_itself
relax.func @around_itself(%x: !relax.object) -> !relax.object {
  // CHECK: relax.closure rec %self
  // CHECK-SAME: -> !relax.tuple<!relax.tuple<!relax.tuple<!relax.tuple<!relax.object>>>>
  %f = relax.closure rec %self (%y: !relax.object) -> !relax.object {
    %0 = relax.call_closure %self(%y)
    %1 = relax.tuple(%0)
    relax.return %1
  }
  relax.return %f
}
