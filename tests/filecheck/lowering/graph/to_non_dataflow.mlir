// RUN: relax-opt %s -p to-non-dataflow | filecheck %s
// RUN: relax-opt %s -p to-non-dataflow,to-non-dataflow | filecheck %s
// RUN: relax-opt %s -p to-non-dataflow --print-debuginfo | filecheck %s --check-prefix LOC

// The ops of the region take its place, and its outputs that of its results.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %a = relax.exp %x
// CHECK-NEXT:    %b = relax.add %a, %x
// CHECK-NEXT:    %c = relax.negative %b
// CHECK-NEXT:    relax.return %c
// CHECK-NOT:   relax.dataflow
// LOC: relax.add %a, %x loc("{{.*}}to_non_dataflow.mlir":

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %r = relax.dataflow {
    %a = relax.exp %x
    %b = relax.add %a, %x
    relax.output %b
  }
  %c = relax.negative %r
  relax.return %c
}
