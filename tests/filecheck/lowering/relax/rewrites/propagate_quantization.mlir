// RUN: relax-opt %s -p propagate-quantization --split-input-file | filecheck %s

// A maximum of bytes, and one scale before and after: nothing but the pooling is left.
// CHECK-LABEL: relax.func @pooled(
// CHECK:         [[POOLED:%\S+]] = relax.nn.max_pool2d %q pool_size = [2, 2]
// CHECK-NEXT:    relax.return [[POOLED]]
relax.func @pooled(%q: !relax.tensor<[1, 4, 6, 6], ui8>) -> !relax.tensor<[1, 4, 5, 5], ui8> {
  %scale = relax.constant dense<0.5> : tensor<f32>
  %zero = relax.constant dense<3.0> : tensor<f32>
  %0 = relax.astype %q dtype = f32
  %1 = relax.subtract %0, %zero
  %2 = relax.multiply %1, %scale
  %3 = relax.nn.max_pool2d %2 pool_size = [2, 2]
  %4 = relax.divide %3, %scale
  %5 = relax.round %4
  %6 = relax.add %5, %zero
  %7 = relax.astype %6 dtype = ui8
  relax.return %7
}

// -----

// A negative scale turns the order around, and a mean is no byte.
// CHECK-LABEL: relax.func @not_pooled(
// CHECK:         relax.nn.max_pool2d %1
// CHECK:         relax.nn.avg_pool2d %3
relax.func @not_pooled(%q: !relax.tensor<[1, 4, 6, 6], i8>) -> !relax.object {
  %scale = relax.constant dense<-0.5> : tensor<f32>
  %0 = relax.astype %q dtype = f32
  %1 = relax.multiply %0, %scale
  %2 = relax.nn.max_pool2d %1 pool_size = [2, 2]
  %half = relax.constant dense<0.5> : tensor<f32>
  %3 = relax.multiply %0, %half
  %4 = relax.nn.avg_pool2d %3 pool_size = [2, 2]
  %5 = relax.tuple(%2, %4)
  relax.return %5
}

// -----

// What is joined is converted before, through a permutation too.
// CHECK-LABEL: relax.func @joined[
// CHECK:         [[X:%\S+]] = relax.permute_dims %x axes = [0, 2, 1]
// CHECK:         [[XQ:%\S+]] = relax.astype {{%\S+}} dtype = i8
// CHECK:         relax.permute_dims %y axes = [0, 2, 1]
// CHECK:         [[YQ:%\S+]] = relax.astype {{%\S+}} dtype = i8
// CHECK-NEXT:    [[JOINED:%\S+]] = relax.concat [[XQ]], [[YQ]] axis = 2
// CHECK-NEXT:    relax.return [[JOINED]]
relax.func @joined[%n](%x: !relax.tensor<[n, 2, 3], f32>, %y: !relax.tensor<[n, 5, 3], f32>) -> !relax.tensor<[n, 3, 7], i8> {
  %steps = relax.constant dense<4.0> : tensor<f32>
  %0 = relax.concat %x, %y axis = -2
  %1 = relax.permute_dims %0 axes = [0, 2, 1]
  %2 = relax.multiply %1, %steps
  %3 = relax.round %2
  %4 = relax.astype %3 dtype = i8
  relax.return %4
}

// -----

// Something else needs the numbers.
// CHECK-LABEL: relax.func @used_twice(
// CHECK:         relax.concat %x, %x
// CHECK-NOT:     relax.concat
relax.func @used_twice(%x: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.concat %x, %x axis = 0
  %1 = relax.round %0
  %2 = relax.astype %1 dtype = ui8
  %3 = relax.tuple(%0, %2)
  relax.return %3
}

// -----

// Bytes that become the same bytes are what they were, in the order in which they are wanted.
// CHECK-LABEL: relax.func @identity(
// CHECK:         [[MOVED:%\S+]] = relax.permute_dims %q axes = [1, 0]
// CHECK-NEXT:    relax.return [[MOVED]]
relax.func @identity(%q: !relax.tensor<[2, 3], ui8>) -> !relax.tensor<[3, 2], ui8> {
  %scale = relax.constant dense<0.5> : tensor<f32>
  %0 = relax.astype %q dtype = f32
  %1 = relax.multiply %0, %scale
  %2 = relax.permute_dims %1 axes = [1, 0]
  %3 = relax.divide %2, %scale
  %4 = relax.round %3
  %5 = relax.astype %4 dtype = ui8
  relax.return %5
}

// -----

// A concatenated tensor that somebody may write into afterwards.
// CHECK-LABEL: relax.func @written
// CHECK:         relax.concat
// CHECK:         relax.call_packed "test.write"(%x)
// CHECK:         relax.round
relax.func @written[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 8], ui8> impure {
  %0 = relax.concat %x, %y axis = 1
  relax.call_packed "test.write"(%x)
  %1 = relax.round %0
  %2 = relax.astype %1 dtype = ui8
  relax.return %2
}
