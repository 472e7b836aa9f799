// RUN: relax-opt %s -p "fold-requantization{target=\"x86-64-v3\"},dce" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "simplify-quantization{target=\"x86-64-v3\"},fold-requantization{target=\"x86-64-v3\"},dce" --split-input-file | filecheck %s --check-prefix AFTER
// RUN: relax-opt %s -p "fold-requantization{target=\"x86-64\"},dce" --split-input-file | filecheck %s --check-prefix NO-FMA

// The zero point, the scales and the bias of a convolution, and the scale of its result.
// CHECK-LABEL: relax.func @convolution
// CHECK:         [[SUMS:%.*]] = relax.nn.conv2d
// CHECK-NEXT:    [[BIAS:%.*]] = relax.constant dense<{{\[\[\[}}-6.000000e+01]], {{\[\[}}-1.000000e+01]]]> : tensor<2x1x1xf32>
// CHECK-NEXT:    [[NUMBERS:%.*]] = relax.astype [[SUMS]] dtype = f32
// CHECK-NEXT:    [[SCALES:%.*]] = relax.constant dense<{{\[\[\[}}2.500000e-01]], {{\[\[}}1.250000e-01]]]> : tensor<2x1x1xf32>
// CHECK-NEXT:    [[SCALED:%.*]] = relax.ewise_fma [[NUMBERS]], [[SCALES]], [[BIAS]]
// CHECK-NEXT:    [[ROUNDED:%.*]] = relax.round [[SCALED]]
// CHECK-NEXT:    relax.astype [[ROUNDED]] dtype = ui8

// A reciprocal in two numbers is one factor likewise.
// AFTER-LABEL: relax.func @convolution
// AFTER-NOT:     relax.multiply
// AFTER:         relax.ewise_fma
// AFTER-NOT:     relax.ewise_fma
// AFTER:         relax.round

// NO-FMA-LABEL: relax.func @convolution
// NO-FMA:         relax.subtract
// NO-FMA:         relax.divide
relax.func @convolution[%n](%x: !relax.tensor<[n, 1, 4, 4], ui8>) -> !relax.tensor<[n, 2, 4, 4], ui8> {
  %w = relax.constant dense<[[[[7]]], [[[-3]]]]> : tensor<2x1x1x1xi8>
  %points = relax.constant dense<[[[200]], [[80]]]> : tensor<2x1x1xi32>
  %scales = relax.constant dense<[[[0.5]], [[0.25]]]> : tensor<2x1x1xf32>
  %bias = relax.constant dense<[[[-20.0]], [[0.0]]]> : tensor<2x1x1xf32>
  %scale = relax.constant dense<2.0> : tensor<f32>
  %0 = relax.nn.conv2d %x, %w out_dtype = i32
  %1 = relax.subtract %0, %points
  %2 = relax.astype %1 dtype = f32
  %3 = relax.multiply %2, %scales
  %4 = relax.add %3, %bias
  %5 = relax.divide %4, %scale
  %6 = relax.round %5
  %7 = relax.astype %6 dtype = ui8
  relax.return %7
}

// -----

// Two quantised operands of an addition.
// CHECK-LABEL: relax.func @addition
// CHECK-NOT:     relax.subtract
// CHECK:         [[SUM:%.*]] = relax.ewise_fma
// CHECK:         [[Y:%.*]] = relax.astype %y dtype = f32
// CHECK:         relax.ewise_fma [[Y]], {{%.*}}, [[SUM]]
// CHECK-NEXT:    relax.round
relax.func @addition[%n](%x: !relax.tensor<[n, 4], ui8>, %y: !relax.tensor<[n, 4], i8>) -> !relax.tensor<[n, 4], ui8> {
  %point = relax.constant dense<128> : tensor<i32>
  %a = relax.constant dense<0.5> : tensor<f32>
  %b = relax.constant dense<0.25> : tensor<f32>
  %scale = relax.constant dense<0.75> : tensor<f32>
  %0 = relax.astype %x dtype = i32
  %1 = relax.subtract %0, %point
  %2 = relax.astype %1 dtype = f32
  %3 = relax.multiply %2, %a
  %4 = relax.astype %y dtype = f32
  %5 = relax.multiply %4, %b
  %6 = relax.add %3, %5
  %7 = relax.divide %6, %scale
  %8 = relax.round %7
  %9 = relax.astype %8 dtype = ui8
  relax.return %9
}

// -----

// Sums that may not be numbers of f32 keep their zero point: 70,000 products of up to 255 x 127.
// CHECK-LABEL: relax.func @long
// CHECK:         relax.subtract
// CHECK:         relax.ewise_fma
relax.func @long[%n](%x: !relax.tensor<[n, 70000], ui8>) -> !relax.tensor<[n, 2], ui8> {
  %w = relax.constant dense<127> : tensor<70000x2xi8>
  %points = relax.constant dense<[200, 80]> : tensor<2xi32>
  %a = relax.constant dense<0.5> : tensor<f32>
  %bias = relax.constant dense<[-20.0, 10.0]> : tensor<2xf32>
  %scale = relax.constant dense<2.0> : tensor<f32>
  %0 = relax.matmul %x, %w out_dtype = i32
  %1 = relax.subtract %0, %points
  %2 = relax.astype %1 dtype = f32
  %3 = relax.multiply %2, %a
  %4 = relax.add %3, %bias
  %5 = relax.divide %4, %scale
  %6 = relax.round %5
  %7 = relax.astype %6 dtype = ui8
  relax.return %7
}

// -----

// Nothing that is used elsewhere, is a number of f32 before, or is no sum of integers times constants.
// CHECK-LABEL: relax.func @others
// CHECK-NOT:     relax.ewise_fma
relax.func @others[%n](%x: !relax.tensor<[n, 4], ui8>, %y: !relax.tensor<[n, 4], f32>) -> !relax.tuple<!relax.tensor<[n, 4], f32>, !relax.tensor<[n, 4], f32>, !relax.tensor<[n, 4], f32>, !relax.tensor<[n, 4], f32>> {
  %a = relax.constant dense<0.5> : tensor<f32>
  %scale = relax.constant dense<2.0> : tensor<f32>
  %0 = relax.astype %x dtype = f32
  %1 = relax.multiply %0, %a
  %2 = relax.divide %1, %scale
  %3 = relax.round %2
  %4 = relax.multiply %y, %a
  %5 = relax.divide %4, %scale
  %6 = relax.round %5
  %7 = relax.astype %x dtype = f32
  %8 = relax.multiply %7, %y
  %9 = relax.divide %8, %scale
  %10 = relax.round %9
  %11 = relax.tuple (%1, %3, %6, %10)
  relax.return %11
}

// -----

// Bytes that somebody may write into after they are read.
// CHECK-LABEL: relax.func @written
// CHECK:         relax.divide
relax.func @written[%n](%x: !relax.tensor<[n, 4], ui8>) -> !relax.tensor<[n, 4], f32> impure {
  %a = relax.constant dense<0.5> : tensor<f32>
  %scale = relax.constant dense<2.0> : tensor<f32>
  %0 = relax.astype %x dtype = f32
  %1 = relax.multiply %0, %a
  relax.call_packed "test.write"(%x)
  %2 = relax.divide %1, %scale
  %3 = relax.round %2
  relax.return %3
}
