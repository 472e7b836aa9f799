// RUN: relax-opt %s -p defer-unknown-types | filecheck %s
// RUN: relax-opt %s -p defer-unknown-types,defer-unknown-types | filecheck %s

// Operators on tensors of unknown rank or dtype go into one text; its function takes what they use.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %0 = relax.string "relax.func @chain(%x: !relax.tensor<*, f32>{{.*}}, %w: !relax.tensor<[4], _>{{.*}}relax.exp{{.*}}relax.add
// CHECK-NEXT:    %z = relax.call_pure_packed "vm.builtin.run_deferred"(%0, %x, %w) : !relax.tensor<*, f32>
// CHECK-NEXT:    relax.return %z
relax.func @chain(%x: !relax.tensor<*, f32>, %w: !relax.tensor<[4], _>) -> !relax.tensor<*, f32> {
  %y = relax.exp %x
  %z = relax.add %y, %w
  relax.return %z
}

// A use in between ends a group; several results come as a tuple.
// CHECK-LABEL: relax.func @groups
// CHECK-NEXT:    %0 = relax.string "
// CHECK-NEXT:    %y = relax.call_pure_packed "vm.builtin.run_deferred"(%0, %x) : !relax.tensor<*, f32>
// CHECK-NEXT:    %p = relax.call_pure_packed "f"(%y) : !relax.tensor<*, f32>
// CHECK-NEXT:    %1 = relax.string "
// CHECK-NEXT:    %2 = relax.call_pure_packed "vm.builtin.run_deferred"(%1, %p) : !relax.tuple<!relax.tensor<*, f32>, !relax.tensor<*, f32>>
// CHECK-NEXT:    %a = relax.tuple_get %2[0]
// CHECK-NEXT:    %b = relax.tuple_get %2[1]
// CHECK-NEXT:    %c = relax.call_pure_packed "g"(%a)
// CHECK-NEXT:    %t = relax.tuple(%a, %b)
relax.func @groups(%x: !relax.tensor<*, f32>) -> !relax.object {
  %y = relax.exp %x
  %p = relax.call_pure_packed "f"(%y) : !relax.tensor<*, f32>
  %a = relax.exp %p
  %b = relax.abs %a
  %c = relax.call_pure_packed "g"(%a) : !relax.object
  %t = relax.tuple(%a, %b)
  relax.return %t
}

// What is written in the program goes along; a symbol that no value tells is handed over as a number.
// CHECK-LABEL: relax.func @symbols
// CHECK-NEXT:    %0 = relax.prim n
// CHECK-NEXT:    %1 = relax.string "relax.func @symbols[%n](%0: !relax.prim<i64, n>{{.*}}, %x: !relax.tensor<*, f32>{{.*}}relax.shape [2 * n, 2]
// CHECK-NEXT:    %y = relax.call_pure_packed "vm.builtin.run_deferred"(%1, %0, %x) : !relax.tensor<[2 * n, 2], f32>
relax.func @symbols[%n](%x: !relax.tensor<*, f32>, %k: !relax.prim<i64, n>) -> !relax.tensor<[2 * n, 2], f32> {
  %s = relax.shape [2 * n, 2]
  %y = relax.reshape %x, %s
  relax.return %y
}

// A rank that follows from dimensions is found at run time; what is known stays.
// CHECK-LABEL: relax.func @squeeze
// CHECK-NEXT:    %y = relax.exp %x
// CHECK-NEXT:    %0 = relax.string "
// CHECK-NEXT:    %z = relax.call_pure_packed "vm.builtin.run_deferred"(%0, %y) : !relax.tensor<*, f32>
relax.func @squeeze[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<*, f32> {
  %y = relax.exp %x
  %z = relax.squeeze %y
  relax.return %z
}
