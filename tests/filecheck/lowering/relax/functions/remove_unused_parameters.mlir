// RUN: relax-opt %s -p remove-unused-parameters --split-input-file | filecheck %s
// RUN: relax-opt %s -p remove-unused-parameters,remove-unused-parameters --split-input-file | filecheck %s
// RUN: relax-opt %s -p remove-unused-parameters --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The parameter goes, the symbol that only it named, and what computed its argument.
// CHECK-LABEL: relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>
// CHECK-LABEL: relax.func @caller
// CHECK-NEXT:    %0 = relax.call @f(%x) : !relax.tensor<[4], f32>
// CHECK-NEXT:    relax.return %0
// LOC: relax.call @f(%x) : !relax.tensor<[4], f32> loc("{{.*}}remove_unused_parameters.mlir":17:3)
relax.func private @f[%n, %k](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[k], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
relax.func @caller(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0 = relax.log %x
  %1 = relax.call @f(%x, %0) : !relax.tensor<[4], f32>
  relax.return %1
}

// -----

// Functions that only hand a value to each other do not use it.
// CHECK-LABEL: relax.func private @even(%x: !relax.object) -> !relax.object
// CHECK-NEXT:    relax.call @odd(%x)
// CHECK-LABEL: relax.func private @odd(%x: !relax.object) -> !relax.object
// CHECK-NEXT:    relax.call @even(%x)
// CHECK-NEXT:    relax.tuple(%0, %x)
relax.func private @even(%x: !relax.object, %y: !relax.object) -> !relax.object {
  %0 = relax.call @odd(%y, %x) : !relax.object
  relax.return %0
}
relax.func private @odd(%y: !relax.object, %x: !relax.object) -> !relax.object {
  %0 = relax.call @even(%x, %y) : !relax.object
  %1 = relax.tuple(%0, %x)
  relax.return %1
}
relax.func @start(%x: !relax.object) -> !relax.object {
  %0 = relax.call @even(%x, %x) : !relax.object
  relax.return %x
}

// -----

// A parameter that tells what a symbol is stays, one of several that do.
// CHECK-LABEL: relax.func private @ones[%k](%w: !relax.tensor<[k], f32>) -> !relax.shape<[k]>
// CHECK-LABEL: relax.func @shape
// CHECK-NEXT:    relax.call @ones(%x)
relax.func private @ones[%k](%w: !relax.tensor<[k], f32>, %v: !relax.tensor<[k], f32>) -> !relax.shape<[k]> {
  %0 = relax.shape [k]
  relax.return %0
}
relax.func @shape(%x: !relax.tensor<[3], f32>, %y: !relax.tensor<[3], f32>) -> !relax.shape<[3]> {
  %0 = relax.call @ones(%x, %y) : !relax.shape<[3]>
  relax.return %0
}

// -----

// What every value of a function captures may go, also where the function captures it for itself; what callers of the
// value give stays, and so does all that a public function takes.
// CHECK-LABEL: relax.func private @value(%x: !relax.object)
// CHECK-NEXT:    relax.make_closure @value() : !relax.func<(!relax.object) -> !relax.object, pure>
// CHECK-LABEL: relax.func @public(%x: !relax.object, %y: !relax.object)
// CHECK-NEXT:    relax.make_closure @value() : !relax.func<(!relax.object) -> !relax.object, pure>
relax.func private @value[%n](%k: !relax.prim<i64, n>, %w: !relax.object, %x: !relax.object) -> !relax.object {
  %0 = relax.make_closure @value(%k, %w) : !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %0
}
relax.func @public(%x: !relax.object, %y: !relax.object) -> !relax.object {
  %k = relax.prim 3
  %0 = relax.call @value(%k, %x, %y) : !relax.object
  %1 = relax.make_closure @value(%k, %0) : !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %1
}
