// RUN: relax-opt %s -p expand-tuple-arguments --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-tuple-arguments,expand-tuple-arguments --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-tuple-arguments --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A nested tuple becomes three parameters. What is made of the values goes if only its fields were read.
// CHECK-LABEL: relax.func private @f(%t: !relax.object, %t_1: !relax.object, %t_2: !relax.object, %c: !relax.prim<i64>)
// CHECK-NEXT:    relax.return %t_2
// CHECK-LABEL: relax.func @nested
// CHECK-NEXT:    %c = relax.prim 3
// CHECK-NEXT:    %0 = relax.call @f(%x, %y, %x, %c) : !relax.object
// CHECK-NEXT:    relax.return %0
// LOC: relax.call @f(%x, %y, %x, %c) : !relax.object loc("{{.*}}expand_tuple_arguments.mlir":22:3)
relax.func private @f(%t: !relax.tuple<!relax.object, !relax.tuple<!relax.object, !relax.object>>, %c: !relax.prim<i64>) -> !relax.object {
  %0 = relax.tuple_get %t[1]
  %1 = relax.tuple_get %0[1]
  relax.return %1
}
relax.func @nested(%x: !relax.object, %y: !relax.object) -> !relax.object {
  %0 = relax.tuple(%y, %x)
  %1 = relax.tuple(%x, %0)
  %c = relax.prim 3
  %2 = relax.call @f(%1, %c) : !relax.object
  relax.return %2
}

// -----

// A tuple that comes from elsewhere is taken apart in front of the call; where a whole one is needed it is made again.
// CHECK-LABEL: relax.func private @whole(%t: !relax.object, %t_1: !relax.object)
// CHECK-NEXT:    %t_2 = relax.tuple(%t, %t_1)
// CHECK-NEXT:    relax.return %t_2
// CHECK-LABEL: relax.func @parameter
// CHECK-NEXT:    %p_1 = relax.tuple_get %p[0]
// CHECK-NEXT:    %p_2 = relax.tuple_get %p[1]
// CHECK-NEXT:    relax.call @whole(%p_1, %p_2)
relax.func private @whole(%t: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
  relax.return %t
}
relax.func @parameter(%p: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
  %0 = relax.call @whole(%p) : !relax.object
  relax.return %0
}

// -----

// These keep their parameters: public functions, functions as values, tuples of which a call knows nothing.
// CHECK-LABEL: relax.func @public(%t: !relax.tuple<!relax.object>)
// CHECK-LABEL: relax.func private @value(%t: !relax.tuple<!relax.object>)
// CHECK-LABEL: relax.func private @unknown(%t: !relax.tuple<!relax.object>)
relax.func @public(%t: !relax.tuple<!relax.object>) -> !relax.object {
  relax.return %t
}
relax.func private @value(%t: !relax.tuple<!relax.object>) -> !relax.object {
  relax.return %t
}
relax.func private @unknown(%t: !relax.tuple<!relax.object>) -> !relax.object {
  relax.return %t
}
relax.func @calls(%x: !relax.object) -> !relax.object {
  %0 = relax.tuple(%x)
  %1 = relax.call @public(%0) : !relax.object
  %2 = relax.call @value(%0) : !relax.object
  %3 = relax.make_closure @value() : !relax.func<(!relax.tuple<!relax.object>) -> !relax.object, pure>
  %4 = relax.call @unknown(%x) : !relax.object
  relax.return %3
}
