// RUN: RELAX_INVALID

// CHECK: 'relax.alloc_tensor' op expected a tensor type with known shape and dtype, got !relax.tensor<[_], f32>
relax.func @alloc_tensor_c1() -> !relax.tensor<[_], f32> impure {
  %0 = relax.alloc_tensor : !relax.tensor<[_], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.alloc_tensor' op expected a known dtype, got !relax.tensor<[_], _>
relax.func @alloc_tensor_c1_shape(%s: !relax.shape<[_]>) -> !relax.tensor<[_], _> impure {
  %0 = relax.alloc_tensor shape(%s) : !relax.tensor<[_], _>
  relax.return %0
}

// -----

// CHECK: 'relax.storage_tensor' op expected a tensor type with known shape and dtype, got !relax.tensor<[4], _>
relax.func @storage_tensor_c1(%s: !relax.object) -> !relax.object impure {
  %0 = relax.storage_tensor %s at 0 : !relax.tensor<[4], _>
  relax.return %s
}

// -----

// CHECK: 'relax.storage_tensor' op expected a storage of 20 bytes, got 16
relax.func @storage_tensor_c2() -> !relax.object impure {
  %s = relax.alloc_storage size 16
  %0 = relax.storage_tensor %s at 4 : !relax.tensor<[2, 2], f32>
  relax.return %s
}

// -----

// CHECK: 'relax.storage_tensor' op expected a storage of 4 * n + 64 bytes, got 4 * n
relax.func @storage_tensor_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %s = relax.alloc_storage size 4 * n
  %0 = relax.storage_tensor %s at 64 : !relax.tensor<[n], f32>
  relax.return %x
}

// -----

// A size is a type's equal: its symbols need a witness.
// CHECK: 'relax.alloc_storage' op property size uses symbol n, which nothing binds
relax.func @unbound() -> !relax.object impure {
  %0 = relax.alloc_storage size 64 * n
  relax.return %0
}
