// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: vm.func private @memory
// CHECK-NEXT:    %s = vm.alloc_storage %n
// CHECK-NEXT:    %a = vm.alloc_tensor %s at %n [%n, %n] f32
// CHECK-NEXT:    %b = vm.new_tensor [%n] bf16
// CHECK-NEXT:    %c = vm.new_tensor [] i1
// CHECK-NEXT:    %v = vm.view %b [%n, %n] bf16
// CHECK-NEXT:    %w = vm.view %u [%n] _
// CHECK-NEXT:    %r = vm.read_cond %c
// CHECK-NEXT:    vm.kill %a
vm.func private @memory(%n: i64, %u: !vm.tensor<2, _>) {
  %s = vm.alloc_storage %n
  %a = vm.alloc_tensor %s at %n [%n, %n] f32
  %b = vm.new_tensor [%n] bf16
  %c = vm.new_tensor [] i1
  %v = vm.view %b [%n, %n] bf16
  %w = vm.view %u [%n] _
  %r = vm.read_cond %c
  vm.kill %a
  vm.ret
}
