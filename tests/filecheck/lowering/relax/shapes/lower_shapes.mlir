// RUN: relax-opt %s -p lower-shapes | filecheck %s
// RUN: relax-opt %s -p lower-shapes,lower-shapes | filecheck %s

// Parameters become objects that one op checks; a symbol may be bound by a later argument.
// CHECK-LABEL: relax.func @entry(%x: !relax.object, %y: !relax.object) -> !relax.tensor<[_], f32> force_pure
// CHECK-NEXT:    %x_1, %y_1, %n, %m = relax.check_args(%x, %y) : (!relax.tensor<[m * n], f32>, !relax.tensor<[n, m], f32>) binds [n, m in [1, 8]] names ["x", "y"] of "entry"
// CHECK-NEXT:    relax.return %x_1
relax.func @entry[%n, %m in [1, 8]](%x: !relax.tensor<[n * m], f32>, %y: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n * m], f32> {
  relax.return %x
}

// A result that may not be what is declared is checked before it is returned.
// CHECK-LABEL: relax.func @result
// CHECK:         %x_2 = relax.match_cast %x_1 : !relax.tensor<[_, _], f32> {subject = "result"}
// CHECK-NEXT:    relax.return %x_2
relax.func @result(%x: !relax.tensor<*, f32>) -> !relax.tensor<[_, _], f32> {
  relax.return %x
}

// What a call knew of its result from the signature is checked where the result arrives.
// CHECK-LABEL: relax.func @caller
// CHECK:         %0 = relax.call @result(%x_1) : !relax.tensor<[_, _], f32>
// CHECK-NEXT:    relax.return %0
relax.func @caller(%x: !relax.tensor<*, f32>) -> !relax.tensor<[_, _], f32> {
  %0 = relax.call @result(%x) : !relax.tensor<[_, _], f32>
  relax.return %0
}

// A function value takes what is left of the new signature; what was known of it is checked where it is made.
// CHECK-LABEL: relax.func @value
// CHECK:         %f = relax.make_closure @both(%x_1) : !relax.func<(!relax.object) -> !relax.tensor<[_], f32>, pure>
// CHECK-NEXT:    %f_1 = relax.match_cast %f : !relax.func<(!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure> {subject = "function value of @both"}
// CHECK-NEXT:    relax.return %f_1
relax.func @both[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func @value[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %f = relax.make_closure @both(%x) : !relax.func<(!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure>
  relax.return %f
}

// What the closures of a private function capture is not counted by errors.
// CHECK-LABEL: relax.func private @code
// CHECK:         binds [n] names ["x", "y"] of "code" captured 1
relax.func private @code[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %y
}
relax.func @closure(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %f = relax.make_closure @code(%x)
  relax.return %f
}
