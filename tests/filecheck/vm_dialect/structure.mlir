// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// A public function takes any values; its parameters may have names.
// CHECK-LABEL: vm.func @main(%x: !vm.object, %w: !vm.object) -> !vm.object attributes {arg_names = ["x", "w"]} {
// CHECK-NEXT:    vm.ret %x
vm.func @main(%x: !vm.object, %w: !vm.object) -> !vm.object attributes {arg_names = ["x", "w"]} {
  vm.ret %x
}

// A private function takes typed values, and need not return one.
// CHECK-LABEL: vm.func private @nothing(%n: i64, %t: !vm.tensor<2, f32>, %s: !vm.storage) {
// CHECK-NEXT:    vm.ret
vm.func private @nothing(%n: i64, %t: !vm.tensor<2, f32>, %s: !vm.storage) {
  vm.ret
}

// Block arguments take values of their type or of a subtype.
// CHECK-LABEL: vm.func private @loop
// CHECK:         vm.goto ^[[HEAD:.*]](%n, %t)
// CHECK:       ^[[HEAD]](%i: i64, %o: !vm.object):
// CHECK:         vm.if %c, ^[[HEAD]](%i, %o), ^[[DONE:.*]]
// CHECK:       ^[[DONE]]:
// CHECK:         vm.ret %o
vm.func private @loop(%n: i64, %t: !vm.tensor<2, f32>) -> !vm.object {
  vm.goto ^head(%n, %t)
^head(%i: i64, %o: !vm.object):
  %c = vm.int lt %i, %n
  vm.if %c, ^head(%i, %o), ^done
^done:
  vm.ret %o
}

// A use that stands before its definition in the text says its type.
// CHECK-LABEL: vm.func private @order
// CHECK:         vm.ret (%late : !vm.tensor<_, _>)
vm.func private @order(%x: !vm.object) -> !vm.object {
  vm.goto ^second
^first:
  vm.ret (%late : !vm.tensor<_, _>)
^second:
  %late = vm.check_tensor %x
  vm.goto ^first
}

// Registers are part of the text.
// CHECK-LABEL: vm.func @registers(%x: !vm.object) attributes {frame_size = 2 : i64, block_registers = [array<i32: 0>]} {
// CHECK:         vm.check_int %x {regs = array<i32: 1>}
vm.func @registers(%x: !vm.object) attributes {frame_size = 2 : i64, block_registers = [array<i32: 0>]} {
  %n = vm.check_int %x {regs = array<i32: 1>}
  vm.ret
}
