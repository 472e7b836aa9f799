// RUN: relax-opt %s -p canonicalize | filecheck %s

// What the type of a tensor says of its shape need not be read from it.
// CHECK-LABEL: relax.func @known
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [n, 4]
// CHECK-NEXT:    %[[DIM:.*]] = relax.prim n
// CHECK-NEXT:    %[[SIZE:.*]] = relax.prim 4 * n
// CHECK-NEXT:    %[[RESULT:.*]] = relax.tuple(%[[SHAPE]], %[[DIM]], %[[SIZE]])
// CHECK-NEXT:    relax.return %[[RESULT]]
relax.func @known[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.shape_of %x
  %1 = relax.shape_get %0[0]
  %2 = relax.size %x
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}

// What is unknown is read.
// CHECK-LABEL: relax.func @unknown
// CHECK-NEXT:    relax.shape_of
// CHECK-NEXT:    relax.shape_get
// CHECK-NEXT:    relax.size
relax.func @unknown(%x: !relax.tensor<[_, 4], f32>) -> !relax.object {
  %0 = relax.shape_of %x
  %1 = relax.shape_get %0[0]
  %2 = relax.size %x
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}

// A field of a tuple that is made here.
// CHECK-LABEL: relax.func @fields
// CHECK-NEXT:    relax.return %y
relax.func @fields(%x: !relax.object, %y: !relax.object) -> !relax.object {
  %0 = relax.tuple(%x, %y)
  %1 = relax.tuple(%0, %x)
  %2 = relax.tuple_get %1[0]
  %3 = relax.tuple_get %2[1]
  relax.return %3
}

// CHECK-LABEL: relax.func @parameter
// CHECK-NEXT:    relax.tuple_get
relax.func @parameter(%x: !relax.tuple<!relax.object>) -> !relax.object {
  %0 = relax.tuple_get %x[0]
  relax.return %0
}

// A tuple of all fields of a tuple is that tuple; of some, or in another order, it is a new one.
// CHECK-LABEL: relax.func @whole
// CHECK-NEXT:    %0 = relax.tuple_get %x[0]
// CHECK-NEXT:    %1 = relax.tuple_get %x[1]
// CHECK-NEXT:    %2 = relax.tuple(%1, %0)
// CHECK-NEXT:    %3 = relax.tuple(%0)
// CHECK-NEXT:    %4 = relax.tuple(%x, %2, %3)
relax.func @whole(%x: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
  %0 = relax.tuple_get %x[0]
  %1 = relax.tuple_get %x[1]
  %2 = relax.tuple(%0, %1)
  %3 = relax.tuple(%1, %0)
  %4 = relax.tuple(%0)
  %5 = relax.tuple(%2, %3, %4)
  relax.return %5
}

// A shape that became a tensor and a shape again.
// CHECK-LABEL: relax.func @there_and_back
// CHECK-NEXT:    relax.return %s
relax.func @there_and_back(%s: !relax.shape<[_, _]>) -> !relax.object {
  %0 = relax.shape_to_tensor %s
  %1 = relax.tensor_to_shape %0
  relax.return %1
}
