// RUN: relax-opt %s -p "use-byte-tables,dce" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "use-byte-tables,dce,use-byte-tables" --split-input-file | filecheck %s

// x * sigmoid(x) of bytes, each step of which is rounded to bytes: one table.
// CHECK-LABEL: relax.func @swish
// CHECK-NEXT:    [[TABLE:%.*]] = relax.constant dense<"0x{{[0-9A-F]*}}"> : tensor<256xui8>
// CHECK-NEXT:    [[Y:%.*]] = relax.take [[TABLE]], %x axis = 0
// CHECK-NEXT:    relax.return [[Y]]
relax.func @swish[%n](%x: !relax.tensor<[n, 8], ui8>) -> !relax.tensor<[n, 8], ui8> {
  %point = relax.constant dense<142> : tensor<i32>
  %scale = relax.constant dense<0.09> : tensor<f32>
  %255 = relax.constant dense<255.0> : tensor<f32>
  %less = relax.constant dense<0.0039> : tensor<f32>
  %23 = relax.constant dense<[[23.4]]> : tensor<1x1xf32>
  %0 = relax.astype %x dtype = i32
  %1 = relax.subtract %0, %point
  %2 = relax.astype %1 dtype = f32
  %3 = relax.multiply %2, %scale
  %4 = relax.sigmoid %3
  %5 = relax.multiply %4, %255
  %6 = relax.round %5
  %7 = relax.astype %6 dtype = ui8
  %8 = relax.astype %7 dtype = f32
  %9 = relax.multiply %8, %less
  %10 = relax.multiply %3, %9
  %11 = relax.multiply %10, %23
  %12 = relax.round %11
  %13 = relax.astype %12 dtype = ui8
  relax.return %13
}

// -----

// A function of two bytes, one that takes no time, and one with a number for each column are computed.
// CHECK-LABEL: relax.func @others
// CHECK-NOT:     relax.take
relax.func @others[%n](%x: !relax.tensor<[n, 2], i8>, %y: !relax.tensor<[n, 2], i8>) -> !relax.tuple<!relax.tensor<[n, 2], i8>, !relax.tensor<[n, 2], i8>, !relax.tensor<[n, 2], i8>> {
  %scales = relax.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %0 = relax.astype %x dtype = f32
  %1 = relax.astype %y dtype = f32
  %2 = relax.tanh %0
  %3 = relax.multiply %2, %1
  %4 = relax.astype %3 dtype = i8
  %5 = relax.negative %0
  %6 = relax.astype %5 dtype = i8
  %7 = relax.multiply %0, %scales
  %8 = relax.exp %7
  %9 = relax.astype %8 dtype = i8
  %10 = relax.tuple(%4, %6, %9)
  relax.return %10
}

// -----

// Bytes that somebody may write into after they are read.
// CHECK-LABEL: relax.func @written
// CHECK-NOT:     relax.take
// CHECK:         relax.sigmoid
relax.func @written[%n](%x: !relax.tensor<[n, 4], ui8>) -> !relax.tensor<[n, 4], ui8> impure {
  %less = relax.constant dense<0.0039> : tensor<f32>
  %0 = relax.astype %x dtype = f32
  %1 = relax.multiply %0, %less
  %2 = relax.sigmoid %1
  relax.call_packed "test.write"(%x)
  %3 = relax.round %2
  %4 = relax.astype %3 dtype = ui8
  relax.return %4
}
