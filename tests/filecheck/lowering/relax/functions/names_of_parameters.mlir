// RUN: relax-opt %s -p 'bind-params{func=bound x_1="weight"}' | filecheck %s --check-prefix BIND
// RUN: relax-opt %s -p 'lift-transform-params{func=lifted num-input=1}' | filecheck %s --check-prefix LIFT
// RUN: relax-opt %s -p 'remove-unused-parameters' | filecheck %s --check-prefix UNUSED
// RUN: relax-opt %s -p 'expand-tuple-arguments' | filecheck %s --check-prefix TUPLE
// RUN: relax-opt %s -p 'lambda-lift' | filecheck %s --check-prefix LAMBDA
// RUN: relax-opt %s -p 'bind-symbolic-vars{func=sizes n=4}' | filecheck %s --check-prefix SYMBOLS
// RUN: relax-opt %s -p 'update-param-struct-info{func=sizes t_1="!relax.tensor<[8], f32>"}' | filecheck %s --check-prefix UPDATE
// RUN: relax-opt %s -p 'lower-shapes' | filecheck %s --check-prefix SHAPES
// RUN: relax-opt %s -p 'relax-to-vm' | filecheck %s --check-prefix VM

// A change of the signature leaves each parameter its name.

// BIND: relax.func @bound(%x: {{.*}} attributes {arg_names = ["x_0"], result_names = ["y:0"]} {
relax.func @bound(%x: !relax.tensor<[2], f32>, %x_1: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32>
    attributes {arg_names = ["x_1", "x_0"], result_names = ["y:0"]} {
  %0 = relax.subtract %x, %x_1
  relax.return %0
}

// LIFT: relax.func @lifted_transform_params(%w: {{.*}} attributes {arg_names = ["w.1"]} {
// LIFT: relax.func @lifted(%x: {{.*}}, %w: {{.*}}, %0: {{.*}} attributes {arg_names = ["x:0", "w.1", "arg2"]} {
relax.func @lifted(%x: !relax.tensor<[2, 2], f32>, %w: !relax.tensor<[2, 2], f32>) -> !relax.tensor<[2, 2], f32>
    attributes {arg_names = ["x:0", "w.1"]} {
  %0 = relax.permute_dims %w
  %1 = relax.matmul %x, %0
  %2 = relax.matmul %1, %w
  relax.return %2
}

// UNUSED: relax.func private @unused(%y: !relax.object) -> !relax.object attributes {arg_names = ["y:0"]} {
relax.func private @unused(%x: !relax.object, %y: !relax.object) -> !relax.object
    attributes {arg_names = ["x:0", "y:0"]} {
  relax.return %y
}

// TUPLE: relax.func private @tuple(%t: !relax.object, %t_1: !relax.object, %y: !relax.object) -> !relax.object attributes {arg_names = ["t:0", "t:0_1", "y:0"]} {
relax.func private @tuple(%t: !relax.tuple<!relax.object, !relax.object>, %y: !relax.object) -> !relax.object
    attributes {arg_names = ["t:0", "y:0"]} {
  %0 = relax.tuple_get %t[1]
  relax.return %0
}

// UNUSED: relax.func @calls(%x: !relax.object, %x_1: !relax.object) -> !relax.object attributes {arg_names = ["x_1", "x_0"]} {
relax.func @calls(%x_1: !relax.object, %x_0: !relax.object) -> !relax.object {
  %0 = relax.call @unused(%x_1, %x_0) : !relax.object
  %1 = relax.tuple(%0, %x_1)
  %2 = relax.call @tuple(%1, %0) : !relax.object
  relax.return %2
}

// What a closure captures makes way for its own parameters.
// LAMBDA: relax.func private @closure_f(%x: {{.*}}, %x_1: {{.*}} attributes {arg_names = ["x_1", "x"]} {
relax.func @closure(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %f = relax.closure (%x_1: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
    %0 = relax.subtract %x, %x_1
    relax.return %0
  }
  relax.return %f
}

// SYMBOLS: relax.func @sizes(%t: !relax.tensor<[4], f32>, %t_1: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> attributes {arg_names = ["t_1", "n"]} {
// UPDATE: relax.func @sizes(%t: !relax.tensor<[8], f32>, %t_1: !relax.tensor<[8], f32>) -> !relax.tensor<[8], f32> attributes {arg_names = ["t_1", "n"]} {
// SHAPES: relax.func @sizes(%t: !relax.object, %t_1: !relax.object) -> {{.*}} attributes {arg_names = ["t_1", "n"]} {
// SHAPES: names ["t_1", "n"] of "sizes"
// VM: vm.func @sizes(%t: !vm.object, %t_1: !vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["t_1", "n"]} {
relax.func @sizes[%n](%t: !relax.tensor<[n], f32>, %t_1: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>
    attributes {arg_names = ["t_1", "n"]} {
  %0 = relax.subtract %t, %t_1
  relax.return %0
}
