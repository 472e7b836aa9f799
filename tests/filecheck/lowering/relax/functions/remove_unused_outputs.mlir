// RUN: relax-opt %s -p remove-unused-outputs --split-input-file | filecheck %s
// RUN: relax-opt %s -p remove-unused-outputs,remove-unused-outputs --split-input-file | filecheck %s
// RUN: relax-opt %s -p remove-unused-outputs --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Fields that no call reads go, with what computed them.
// CHECK-LABEL: relax.func private @f
// CHECK-SAME:    -> !relax.tuple<!relax.tensor<[2], f32>> {
// CHECK-NEXT:    %0 = relax.log %x
// CHECK-NEXT:    %1 = relax.tuple(%0)
// CHECK-NEXT:    relax.return %1
// CHECK-LABEL: relax.func @caller
// CHECK-NEXT:    %0 = relax.call @f(%x) : !relax.tuple<!relax.tensor<[2], f32>>
// CHECK-NEXT:    %1 = relax.tuple_get %0[0]
// CHECK-NEXT:    relax.return %1
// LOC: relax.tuple_get %0[0] loc("{{.*}}remove_unused_outputs.mlir":24:3)
relax.func private @f(%x: !relax.tensor<[2], f32>) -> !relax.tuple<!relax.tensor<[2], f32>, !relax.tensor<[2], f32>> {
  %0 = relax.exp %x
  %1 = relax.log %x
  %2 = relax.tuple(%0, %1)
  relax.return %2
}
relax.func @caller(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  %0 = relax.call @f(%x) : !relax.tuple<!relax.tensor<[2], f32>, !relax.tensor<[2], f32>>
  %1 = relax.tuple_get %0[1]
  relax.return %1
}

// -----

// A result that is passed on unchanged shrinks with that of the function that passes it on, and stays in tail position.
// CHECK-LABEL: relax.func private @loop
// CHECK-SAME:    -> !relax.tuple<!relax.object> {
// CHECK-NEXT:    %0 = relax.call @loop(%x, %y) : !relax.tuple<!relax.object>
// CHECK-NEXT:    relax.return %0
relax.func private @loop(%x: !relax.object, %y: !relax.object) -> !relax.tuple<!relax.object, !relax.object> {
  %0 = relax.call @loop(%x, %y) : !relax.tuple<!relax.object, !relax.object>
  relax.return %0
}
relax.func @start(%x: !relax.object) -> !relax.object {
  %0 = relax.call @loop(%x, %x) : !relax.tuple<!relax.object, !relax.object>
  %1 = relax.tuple_get %0[1]
  relax.return %1
}

// -----

// Where others read more of what is passed on, the fields are chosen.
// CHECK-LABEL: relax.func private @chosen
// CHECK-SAME:    -> !relax.tuple<!relax.object> {
// CHECK-NEXT:    %0 = relax.call @both(%x)
// CHECK-NEXT:    %1 = relax.tuple_get %0[1]
// CHECK-NEXT:    %2 = relax.tuple(%1)
// CHECK-NEXT:    relax.return %2
relax.func private @both(%x: !relax.object) -> !relax.tuple<!relax.object, !relax.object> {
  %0 = relax.tuple(%x, %x)
  relax.return %0
}
relax.func private @chosen(%x: !relax.object) -> !relax.tuple<!relax.object, !relax.object> {
  %0 = relax.call @both(%x) : !relax.tuple<!relax.object, !relax.object>
  relax.return %0
}
relax.func @reads(%x: !relax.object) -> !relax.object {
  %0 = relax.call @chosen(%x) : !relax.tuple<!relax.object, !relax.object>
  %1 = relax.tuple_get %0[1]
  %2 = relax.call @both(%x) : !relax.tuple<!relax.object, !relax.object>
  %3 = relax.tuple_get %2[0]
  %4 = relax.tuple(%1, %3)
  relax.return %4
}

// -----

// A use of the whole tuple reads all of it.
// CHECK-LABEL: relax.func private @used
// CHECK-SAME:    -> !relax.tuple<!relax.object, !relax.object> {
relax.func private @used(%x: !relax.object) -> !relax.tuple<!relax.object, !relax.object> {
  %0 = relax.tuple(%x, %x)
  relax.return %0
}
relax.func @all(%x: !relax.object) -> !relax.object {
  %0 = relax.call @used(%x) : !relax.tuple<!relax.object, !relax.object>
  relax.return %0
}
