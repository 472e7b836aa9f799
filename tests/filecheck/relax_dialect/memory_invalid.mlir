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

// -----

// CHECK: 'relax.call_kernel' op calls @strided, whose parameter #0 expected a plain layout, got !tir.buffer<[2], f32, strides = [4]>
tir.prim_func @strided(%A: !tir.buffer<[2], f32, strides = [4]>) {
}
relax.func @call_kernel_c1(%x: !relax.tensor<[2], f32>) -> !relax.tuple<> impure {
  relax.call_kernel @strided(%x)
  %0 = relax.tuple()
  relax.return %0
}

// -----

// CHECK: 'relax.make_closure' op expected a function of tensors, got @behind, whose parameter #1 expected a plain layout, got !tir.buffer<[2], f32, offset = 1>
tir.prim_func @behind(%A: !tir.buffer<[2], f32>, %B: !tir.buffer<[2], f32, offset = 1>) {
}
relax.func @make_closure_of_a_strange_layout() -> !relax.object {
  %f = relax.make_closure @behind()
  relax.return %f
}

// -----

// CHECK: 'relax.check_apart' op expected tensors of known rank and dtype, got !relax.tensor<*, f32>
relax.func @check_apart_c1(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<*, f32>) -> !relax.tuple<> impure {
  relax.check_apart %x, %y, "overlap"
  %0 = relax.tuple()
  relax.return %0
}
