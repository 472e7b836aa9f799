// RUN: relax-opt %s -p "simplify-quantization{target=x86-64-v3}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "simplify-quantization{target=x86-64-v3},simplify-quantization{target=x86-64-v3}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "simplify-quantization{target=x86-64-v2}" --split-input-file | filecheck %s --check-prefix PLAIN
// RUN: relax-opt %s -p "simplify-quantization{target=x86-64-v3}" --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A multiple of the reciprocal, in two parts, is rounded like the quotient; the conversion has the bounds itself.
// CHECK-LABEL: relax.func @quantise
// CHECK-NOT:     relax.divide
// CHECK:         [[X:%.*]] = relax.nn.relu %x
// CHECK-NEXT:    [[HIGH:%.*]] = relax.constant dense<42.4999962> : tensor<f32>
// CHECK-NEXT:    [[LOW:%.*]] = relax.constant dense<2.98349187e-06> : tensor<f32>
// CHECK-NEXT:    [[SMALL:%.*]] = relax.multiply [[X]], [[LOW]]
// CHECK-NEXT:    [[Q:%.*]] = relax.ewise_fma [[X]], [[HIGH]], [[SMALL]]
// CHECK-NEXT:    [[R:%.*]] = relax.round [[Q]]
// CHECK-NEXT:    [[S:%.*]] = relax.add [[R]], %point
// CHECK-NEXT:    [[B:%.*]] = relax.astype [[S]] dtype = ui8
// CHECK-NEXT:    relax.return [[B]]
// Without fused multiply-add the division stays.
// PLAIN-LABEL: relax.func @quantise
// PLAIN:         relax.divide
// PLAIN:         relax.add
// PLAIN-NEXT:    relax.astype
// LOC: relax.ewise_fma {{.*}} loc("{{.*}}":[[# @LINE + 11]]:3)
relax.func @quantise[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], ui8> {
  %scale = relax.constant dense<0.0235294122> : tensor<f32>
  %point = relax.constant dense<3.0> : tensor<f32>
  %zero = relax.constant dense<0.0> : tensor<f32>
  %highest = relax.constant dense<255.0> : tensor<f32>
  %relu = relax.nn.relu %x
  %0 = relax.divide %relu, %scale
  %1 = relax.round %0
  %2 = relax.add %1, %point
  %3 = relax.maximum %2, %zero
  %4 = relax.minimum %3, %highest
  %5 = relax.astype %4 dtype = ui8
  relax.return %5
}

// -----

// Bounds within the range of the integers stay; adding 0 does nothing to an integer.
// CHECK-LABEL: relax.func @bounds
// CHECK:         relax.minimum
// CHECK-NEXT:    relax.astype
// CHECK-NEXT:    relax.astype %y dtype = i8
relax.func @bounds[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], i8>, !relax.tensor<[n], i8>> {
  %low = relax.constant dense<-128.0> : tensor<f32>
  %high = relax.constant dense<100.0> : tensor<f32>
  %zero = relax.constant dense<0.0> : tensor<f32>
  %0 = relax.maximum %x, %low
  %1 = relax.minimum %0, %high
  %2 = relax.astype %1 dtype = i8
  %3 = relax.add %y, %zero
  %4 = relax.astype %3 dtype = i8
  %5 = relax.tuple(%2, %4)
  relax.return %5
}

// -----

// A scale that is not known, or has no such reciprocal, is divided by.
// CHECK-LABEL: relax.func @divided
// CHECK:         relax.divide %x, %s
// CHECK:         relax.divide %x, %tiny
relax.func @divided[%n](%x: !relax.tensor<[n], f32>, %s: !relax.tensor<[], f32>) -> !relax.tensor<[n], ui8> {
  %tiny = relax.constant dense<1.0e-30> : tensor<f32>
  %0 = relax.divide %x, %s
  %1 = relax.round %0
  %2 = relax.astype %1 dtype = ui8
  %3 = relax.divide %x, %tiny
  %4 = relax.round %3
  %5 = relax.astype %4 dtype = ui8
  %6 = relax.add %2, %5
  relax.return %6
}

// -----

// Numbers that are bounded without a conversion are rounded without a division, too; their bounds stay.
// CHECK-LABEL: relax.func @bounded
// CHECK-NOT:     relax.divide
// CHECK:         relax.ewise_fma
// CHECK-NEXT:    [[R:%.*]] = relax.round
// CHECK-NEXT:    [[S:%.*]] = relax.add [[R]], %point
// CHECK:         [[M:%.*]] = relax.maximum [[S]], {{%.*}}
// CHECK-NEXT:    [[B:%.*]] = relax.minimum [[M]], {{%.*}}
// CHECK-NEXT:    relax.astype [[B]] dtype = f16
relax.func @bounded[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f16> {
  %scale = relax.constant dense<0.0235294> : tensor<f32>
  %point = relax.constant dense<3.0> : tensor<f32>
  %least = relax.constant dense<0.0> : tensor<f32>
  %greatest = relax.constant dense<255.0> : tensor<f32>
  %0 = relax.divide %x, %scale
  %1 = relax.round %0
  %2 = relax.add %1, %point
  %3 = relax.maximum %least, %2
  %4 = relax.minimum %3, %greatest
  %5 = relax.astype %4 dtype = f16
  relax.return %5
}
