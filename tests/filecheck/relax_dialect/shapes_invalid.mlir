// RUN: RELAX_INVALID

// CHECK: 'relax.shape_get' op expected an index within !relax.shape<[_, 4]>, got 2
relax.func @shape_get_c1(%s: !relax.shape<[_, 4]>) -> !relax.object {
  %0 = relax.shape_get %s[2]
  relax.return %0
}

// -----

// CHECK: 'relax.tensor_to_shape' op operand #0 expected a tensor of rank 1 and dtype i64, got !relax.tensor<[4, 4], i64>
relax.func @tensor_to_shape_c1(%x: !relax.tensor<[4, 4], i64>) -> !relax.object {
  %0 = relax.tensor_to_shape %x
  relax.return %0
}

// -----

// CHECK: 'relax.tuple_get' op expected an index within the tuple, got 1 of !relax.tuple<!relax.object>
relax.func @tuple_get_c1(%x: !relax.tuple<!relax.object>) -> !relax.object {
  %0 = relax.tuple_get %x[1]
  relax.return %0
}
