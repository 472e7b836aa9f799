// RUN: relax-opt %s -p "pack-weights{target=znver4}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "pack-weights{target=znver4},pack-weights{target=znver4}" --split-input-file | filecheck %s

// The filters of a 1 x 1 convolution are columns; dimensions of one element do not count.
// CHECK-LABEL: tir.prim_func @conv_panels[%n](%X: !tir.buffer<[n, 8], ui8>, %W: !tir.buffer<[2, 2, 32, 4], i8>
// CHECK:         tir.load %W[{{.*}}, {{.*}}, {{.*}}, {{.*}}]
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    relax.constant {{.*}} tensor<2x2x32x4xi8>
tir.prim_func @conv[%n](%X: !tir.buffer<[n, 8], ui8>, %W: !tir.buffer<[64, 1, 1, 8], i8>, %Y: !tir.buffer<[n, 64], i32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  tir.for (%i, %j, %a, %b, %k) in (%n, %c64, %c1, %c1, %c8) {
    tir.block "conv" (%vi = spatial %i in %n, %vj = spatial %j in %c64, %va = reduce %a in %c1, %vb = reduce %b in %c1, %vk = reduce %k in %c8) {
      tir.init {
        %zero = arith.constant 0 : i32
        tir.store %zero, %Y[%vi, %vj]
      }
      %y = tir.load %Y[%vi, %vj]
      %x = tir.load %X[%vi, %vk]
      %w = tir.load %W[%vj, %va, %vb, %vk]
      %p = arith.extui %x : i8 to i32
      %q = arith.extsi %w : i8 to i32
      %r = arith.muli %p, %q : i32
      %s = arith.addi %y, %r : i32
      tir.store %s, %Y[%vi, %vj]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 8], ui8>) -> !relax.tensor<[n, 64], i32> {
  %w = relax.constant dense<2> : tensor<64x1x1x8xi8>
  %0 = relax.call_tir @conv(%x, %w) : !relax.tensor<[n, 64], i32>
  relax.return %0
}

// -----

// Weights of a product inside of a loop.
// CHECK-LABEL: tir.prim_func @steps_panels[%t, %n](%X: !tir.buffer<[n, 8], ui8>, %W: !tir.buffer<[1, 2, 32, 4], i8>
// CHECK-LABEL: relax.func @main
tir.prim_func @steps[%t, %n](%X: !tir.buffer<[n, 8], ui8>, %W: !tir.buffer<[1, 8, 32], i8>, %T: !tir.buffer<[t], i32>, %Y: !tir.buffer<[n, 32], i32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  tir.for (%step) in (%t) {
    tir.for (%i, %k, %j) in (%n, %c8, %c32) {
      tir.block "product" (%vi = spatial %i in %n, %vk = reduce %k in %c8, %vj = spatial %j in %c32) {
        tir.init {
          %zero = arith.constant 0 : i32
          tir.store %zero, %Y[%vi, %vj]
        }
        %y = tir.load %Y[%vi, %vj]
        %x = tir.load %X[%vi, %vk]
        %w = tir.load %W[%c0, %vk, %vj]
        %p = arith.extui %x : i8 to i32
        %q = arith.extsi %w : i8 to i32
        %r = arith.muli %p, %q : i32
        %s = arith.addi %y, %r : i32
        tir.store %s, %Y[%vi, %vj]
      }
    }
  }
}
relax.func @main[%t, %n](%x: !relax.tensor<[n, 8], ui8>, %s: !relax.tensor<[t], i32>) -> !relax.tensor<[n, 32], i32> {
  %w = relax.constant dense<2> : tensor<1x8x32xi8>
  %0 = relax.call_tir @steps(%x, %w, %s) : !relax.tensor<[n, 32], i32>
  relax.return %0
}
