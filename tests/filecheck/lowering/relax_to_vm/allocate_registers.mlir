// RUN: relax-opt %s -p allocate-registers | filecheck %s
// RUN: relax-opt %s -p allocate-registers,allocate-registers | filecheck %s

// The parameters have the first registers; a result takes over the register of an operand that it uses up.
// CHECK-LABEL: vm.func private @chain
// CHECK-SAME:    frame_size = 2 : i64, block_registers = [array<i32: 0, 1>]
// CHECK-NEXT:    %a = vm.int add %n, %m {regs = array<i32: 0>}
// CHECK-NEXT:    %b = vm.int add %a, %m {regs = array<i32: 0>}
// CHECK-NEXT:    vm.ret %b
vm.func private @chain(%n: i64, %m: i64) -> i64 {
  %a = vm.int add %n, %m
  %b = vm.int add %a, %m
  vm.ret %b
}

// Constants have no register, and results without a use have -1.
// CHECK-LABEL: vm.func private @constants
// CHECK-SAME:    frame_size = 2 : i64
// CHECK-NEXT:    %two = vm.const 2 : i64
// CHECK-NEXT:    %w = vm.constant_tensor @w
// CHECK-NEXT:    vm.call_packed "f"(%w) {regs = array<i32: -1>}
// CHECK-NEXT:    %m = vm.int mul %n, %two {regs = array<i32: 1>}
vm.constant @w : tensor<2xf32>
vm.func private @constants(%n: i64) -> i64 {
  %two = vm.const 2 : i64
  %w = vm.constant_tensor @w : !vm.tensor<1, f32>
  %r = vm.call_packed "f"(%w) : !vm.object
  %m = vm.int mul %n, %two
  vm.call_packed "g"(%n, %m)
  vm.ret %m
}

// A value that lives through a loop keeps its register; the block argument and what is passed to it share one.
// CHECK-LABEL: vm.func private @loop
// CHECK-SAME:    frame_size = 3 : i64, block_registers = [array<i32: 0>, array<i32: 1>, array<i32>]
// CHECK:         %next = vm.int add %i, %one {regs = array<i32: 1>}
// CHECK-NEXT:    %more = vm.int lt %next, %n {regs = array<i32: 2>}
vm.func private @loop(%n: i64) -> i64 {
  %zero = vm.const 0 : i64
  %one = vm.const 1 : i64
  vm.goto ^head(%zero)
^head(%i: i64):
  %next = vm.int add %i, %one
  %more = vm.int lt %next, %n
  vm.if %more, ^head(%next), ^done
^done:
  vm.ret %next
}

// Values that change places at a jump need one register more.
// CHECK-LABEL: vm.func private @swap
// CHECK-SAME:    frame_size = 4 : i64, block_registers = [array<i32: 0, 1, 2>, array<i32: 0, 1>, array<i32>]
vm.func private @swap(%a: i64, %b: i64, %c: i1) -> i64 {
  vm.goto ^head(%a, %b)
^head(%x: i64, %y: i64):
  vm.if %c, ^head(%y, %x), ^done
^done:
  %r = vm.int sub %x, %y
  vm.ret %r
}
