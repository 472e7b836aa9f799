// RUN: relax-opt %s -p convert-vm-to-llvm --split-input-file | filecheck %s
// RUN: relax-opt %s -p convert-vm-to-llvm,convert-vm-to-llvm --split-input-file | filecheck %s
// RUN: relax-opt %s -p convert-vm-to-llvm --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Integers are registers, their arithmetic is LLVM's; a check that fails goes to the one way out.
// CHECK-LABEL: llvm.func internal @vm.double(%ret: !llvm.ptr, %n: !llvm.ptr) -> i32
// CHECK:         %[[KIND:.+]] = llvm.load %n : !llvm.ptr -> i32
// CHECK-NEXT:    %[[WRONG:.+]] = llvm.icmp "ne" %[[KIND]], %{{.*}} : i32
// CHECK-NEXT:    llvm.cond_br %[[WRONG]], ^[[FAIL:bb[0-9]+]], ^[[GO:bb[0-9]+]]
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    llvm.call @vmrt_fail_kind
// CHECK-NEXT:    llvm.br ^[[EXIT:bb[0-9]+]](%{{.*}} : i64)
// CHECK:       ^[[GO]]:
// CHECK:         %m = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK-NEXT:    %[[SUM:.+]] = llvm.call_intrinsic "llvm.sadd.with.overflow.i64"(%m, %m)
// CHECK-NEXT:    %r = llvm.extractvalue %[[SUM]][0]
// CHECK-NEXT:    %[[OVERFLOW:.+]] = llvm.extractvalue %[[SUM]][1]
// CHECK-NEXT:    llvm.cond_br %[[OVERFLOW]]
// CHECK:         llvm.call @vmrt_fail_overflow
// CHECK:         llvm.br ^[[EXIT]](%{{.*}} : i64)
// CHECK:       ^[[EXIT]](%[[PLACE:.+]]: i64):
// CHECK-NEXT:    llvm.icmp "sge" %[[PLACE]]
// CHECK:         llvm.call @vmrt_trace
vm.func @double(%n : !vm.object) -> i64 attributes {arg_names = ["n"]} {
  %m = vm.check_int %n as "double: argument #0 (n)"
  %r = vm.int add %m, %m
  vm.ret %r
}

// The entry checks the number of arguments.
// CHECK-LABEL: llvm.func @__tvm_ffi_double(%self: !llvm.ptr, %args: !llvm.ptr, %count: i32, %{{.*}}: !llvm.ptr) -> i32
// CHECK:         %[[RIGHT:.+]] = llvm.icmp "eq" %count, %{{.*}} : i32
// CHECK:         llvm.call @vmrt_arguments
// CHECK:         llvm.call @vm.double(%{{.*}}, %{{.*}})

// CHECK-LABEL: llvm.func @module.init
// CHECK-LABEL: llvm.func @module.info

// Code has the location of the op that it stands for.
// LOC:         llvm.func internal @vm.double
// LOC:           %m = llvm.load {{.*}} loc("{{.*}}.mlir":{{[0-9]+}}:3)
// LOC-NEXT:      llvm.call_intrinsic {{.*}} loc("{{.*}}.mlir":{{[0-9]+}}:3)
// LOC:         } loc("{{.*}}.mlir":{{[0-9]+}}:1)

// -----

// A tensor in a storage is an address; the kernel is called on it and on registers, and its status is looked at.
// CHECK:         llvm.mlir.global internal @module.arenas
// CHECK-LABEL: llvm.func @exp(i64, !llvm.ptr, !llvm.ptr) -> i32
// CHECK-LABEL: llvm.func internal @vm.main
// CHECK:         %[[X:.+]] = llvm.call @vmrt_check_tensor
// CHECK:         %n = llvm.load
// CHECK:         %s = llvm.call @vmrt_arena_take
// CHECK:         llvm.call @vmrt_place
// CHECK:         %t = llvm.getelementptr inbounds %s[%{{.*}}]
// CHECK-NEXT:    %[[STATUS:.+]] = llvm.call @exp(%n, %x, %t) : (i64, !llvm.ptr, !llvm.ptr) -> i32
// CHECK-NEXT:    llvm.icmp "ne" %[[STATUS]]
// CHECK:         %y = llvm.call @vmrt_new_tensor
// CHECK-NOT:     llvm.call @vmrt_clear
// CHECK:         llvm.call @vmrt_release
// CHECK-NEXT:    %[[BLOCK:.+]] = llvm.load
// CHECK-NEXT:    llvm.call @vmrt_arena_give(%{{.*}}, %[[BLOCK]])
// CHECK:         llvm.return
vm.func private @main(%o : !vm.object) -> !vm.tensor<1, f32> {
  %x = vm.check_tensor %o rank 1 dtype f32 as "main: argument #0 (x)"
  %n = vm.tensor_dim %x[0]
  %bytes = vm.const 64
  %zero = vm.const 0
  %s = vm.alloc_storage %bytes
  %t = vm.alloc_tensor %s at %zero [%n] f32
  vm.call_kernel @exp[%n](%x, %t)
  %y = vm.new_tensor [%n] f32
  vm.call_kernel @exp[%n](%t, %y)
  vm.kill %t
  vm.kill %x
  vm.ret %y
}

// Nobody enters a private function from outside.
// CHECK-NOT: __tvm_ffi_main

// -----

// Block arguments that are objects are slots of the frame, numbers are LLVM's block arguments; a swap goes through
// slots in between.
// CHECK-LABEL: llvm.func internal @vm.swap
// CHECK:       ^[[HEAD:bb[0-9]+]](%i: i64):
// CHECK:         %[[DIFFERENCE:.+]] = llvm.call_intrinsic "llvm.ssub.with.overflow.i64"(%i
// CHECK-NEXT:    %j = llvm.extractvalue %[[DIFFERENCE]][0]
// CHECK:         llvm.call @vmrt_assign
// CHECK:         llvm.call @vmrt_move
// CHECK:         llvm.call @vmrt_move
// CHECK-NEXT:    llvm.br ^[[HEAD]](%j : i64)
vm.func private @swap(%n : i64, %a : !vm.object, %b : !vm.object) -> !vm.object {
  %one = vm.const 1
  vm.goto ^head(%n, %a, %b)
^head(%i : i64, %p : !vm.object, %q : !vm.object):
  %j = vm.int sub %i, %one
  %more = vm.int lt %one, %i
  vm.if %more, ^head(%j, %q, %p), ^done
^done:
  vm.ret %p
}

// -----

// A call of a function value in tail position is left to the caller, with a function that checks the result; the frame is gone.
// CHECK-LABEL: llvm.func internal @vm.again
// CHECK:         %[[CHECK:.+]] = llvm.mlir.addressof @__tvm_ffi_again.result0
// CHECK:         llvm.call @vmrt_defer(%ret, %{{.*}}, %{{.*}}, %[[CHECK]], %{{.*}})
// CHECK:         llvm.call @vmrt_stack_leave
// CHECK-NEXT:    llvm.return
// CHECK-NOT:     llvm.call @vmrt_call
// CHECK-LABEL: llvm.func internal @vm.main
// CHECK:         %[[LEFT:.+]] = llvm.call @vm.again
// CHECK-NEXT:    %[[STATUS:.+]] = llvm.call @vmrt_finish(%[[LEFT]], %{{.*}})
// CHECK-NEXT:    llvm.icmp "ne" %[[STATUS]]
// CHECK-LABEL: llvm.func internal @vm.again.result0(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr) -> i32
// CHECK:         llvm.icmp "eq"
vm.func private @again(%self : !vm.object) -> i64 {
  %n = vm.check_int %self as "again: argument #0 (self)"
  %r = vm.call_closure %self(%self) : !vm.object
  %i = vm.check_int %r as "again: result of a closure"
  %same = vm.int eq %n, %i
  vm.assert %same, "again: expected {}"(%n)
  vm.ret %i
}
vm.func private @main() -> i64 {
  %again = vm.make_closure @again()
  %r = vm.call @again(%again) : i64
  %two = vm.int add %r, %r
  vm.ret %two
}

// -----

// A call in tail position that closes a cycle leaves the frame before: recursion without a stack, and without a guard.
// CHECK-LABEL: llvm.func internal @vm.loop(%ret: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK-NOT:     vmrt_stack_enter
// CHECK:         llvm.call @vmrt_release
// CHECK:         %[[STATUS:.+]] = llvm.call musttail @vm.loop
// CHECK-NEXT:    llvm.return %[[STATUS]] : i32
vm.func private @loop(%x : !vm.object) -> !vm.object {
  %c = vm.check_bool %x
  vm.if %c, ^done, ^again
^again:
  %y = vm.tuple_get %x[0]
  %r = vm.call @loop(%y) : !vm.object
  vm.ret %r
^done:
  vm.ret %x
}

// Other recursion is guarded.
// CHECK-LABEL: llvm.func internal @vm.deep
// CHECK:         llvm.call @vmrt_stack_enter
// CHECK:         llvm.call @vm.deep
// CHECK:         llvm.call @vmrt_stack_leave
vm.func private @deep(%n : i64) -> i64 {
  %m = vm.call @deep(%n) : i64
  %r = vm.int add %m, %n
  vm.ret %r
}

// -----

// Division rounds towards minus infinity; by a constant it needs no check.
// CHECK-LABEL: llvm.func internal @vm.halves
// CHECK-NOT:     vmrt_fail_division
// CHECK:         llvm.srem
// CHECK:         llvm.sdiv
// CHECK-LABEL: llvm.func internal @vm.parts
// CHECK:         llvm.call @vmrt_fail_division
vm.func private @halves(%n : i64) -> i64 {
  %two = vm.const 2
  %r = vm.int floordiv %n, %two
  vm.ret %r
}
vm.func private @parts(%n : i64, %m : i64) -> i64 {
  %r = vm.int floordiv %n, %m
  vm.ret %r
}

// -----

// A view that nobody keeps is an address and sizes; one that is returned is an object.
// CHECK-LABEL: llvm.func internal @vm.local
// CHECK-NOT:     vmrt_view
// CHECK:         llvm.call @use(%v)
// CHECK-LABEL: llvm.func internal @vm.kept
// CHECK:         llvm.call @vmrt_view
vm.func private @local(%x : !vm.tensor<2, f32>, %n : i64) {
  %v = vm.view %x [%n] f32
  vm.call_kernel @use(%v)
  vm.ret
}
vm.func private @kept(%x : !vm.tensor<2, f32>, %n : i64) -> !vm.tensor<1, f32> {
  %v = vm.view %x [%n] f32
  vm.ret %v
}

// -----

// Short strings, null and dtypes are constants of the module; long strings, tensors and packed functions are made when
// it is loaded.
// CHECK:         llvm.mlir.global private constant @module.literal.0
// CHECK:         llvm.mlir.global internal @module.objects() {{.*}} !llvm.array<6 x i64>
// CHECK-LABEL: llvm.func internal @vm.constants
// CHECK:         llvm.call @vmrt_call
// CHECK:         llvm.call @vmrt_init
// CHECK:         llvm.call @vmrt_bind_constant
// CHECK:         llvm.call @vmrt_load_string
// CHECK:         llvm.call @vmrt_bind_packed
vm.constant @weight : tensor<2xf32>
vm.func private @constants() -> !vm.object {
  %a = vm.str "short"
  %b = vm.str "not so short"
  %c = vm.constant_tensor @weight : !vm.tensor<1, f32>
  %r = vm.call_packed "f"(%a, %b, %c) : !vm.object
  vm.ret %r
}

// -----

// Sums and products of the sizes of tensors, which are limited, are not checked until they may have more than 64 bits.
// CHECK-LABEL: llvm.func internal @vm.bytes
// CHECK:         %bytes = llvm.mul %n, %{{.*}} : i64
// CHECK-NEXT:    %more = llvm.add %bytes, %n : i64
// CHECK-NEXT:    llvm.call_intrinsic "llvm.smul.with.overflow.i64"(%more, %n)
// CHECK:         llvm.call_intrinsic "llvm.sadd.sat.i64"(%square, %n)
vm.func @bytes(%o : !vm.object) -> i64 attributes {arg_names = ["x"]} {
  %x = vm.check_tensor %o rank 1 dtype f32 as "x"
  %n = vm.tensor_dim %x[0]
  %four = vm.const 4
  %bytes = vm.int mul %n, %four
  %more = vm.int add %bytes, %n
  %square = vm.int mul %more, %n
  %sum = vm.int add_sat %square, %n
  vm.ret %sum
}
