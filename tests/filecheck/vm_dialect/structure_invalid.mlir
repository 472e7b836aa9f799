// RUN: RELAX_INVALID

// CHECK: 'vm.func' op @func_c1 entry block arguments differ from the function's parameter types
"builtin.module"() ({
  "vm.func"() <{sym_name = "func_c1", function_type = (!vm.object) -> ()}> ({
  ^entry(%n: i64):
    "vm.ret"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: 'vm.func' op @func_c2 expected at most one result that is not a storage
vm.func private @func_c2(%s: !vm.storage) -> !vm.storage {
  vm.ret %s
}

// -----

// CHECK: 'vm.func' op @func_c3 expected 2 distinct arg_names, got 2
vm.func @func_c3(%x: !vm.object, %y: !vm.object) attributes {arg_names = ["x", "x"]} {
  vm.ret
}

// -----

// CHECK: 'vm.func' op @func_c4 is public, so its parameters must be !vm.object
vm.func @func_c4(%n: i64) {
  vm.ret
}

// -----

// CHECK: 'vm.func' op @func_c5 has no body, or an empty block in it
"builtin.module"() ({
  "vm.func"() <{sym_name = "func_c5", function_type = () -> ()}> ({}) : () -> ()
}) : () -> ()

// -----

// CHECK: 'vm.func' op @func_c5 has no body, or an empty block in it
vm.func @func_c5() {
  vm.ret
^empty:
}

// -----

// CHECK: 'vm.ret' op expected !vm.tensor<2, f32>, got !vm.object
vm.func @ret_c1(%x: !vm.object) -> !vm.tensor<2, f32> {
  vm.ret %x
}

// -----

// CHECK: 'vm.ret' op expected no value, got !vm.object
vm.func @ret_c1(%x: !vm.object) {
  vm.ret %x
}

// -----

// CHECK: 'vm.goto' op target block argument #0 expected type i64, got !vm.object
vm.func @goto_c1(%x: !vm.object) {
  vm.goto ^next(%x)
^next(%n: i64):
  vm.ret
}

// -----

// CHECK: 'vm.if' op else block expected 1 arguments, got 0
vm.func private @if_c1(%c: i1) {
  vm.if %c, ^then, ^else
^then:
  vm.ret
^else(%n: i64):
  vm.ret
}

// -----

// CHECK: '%late' is used before its definition: write (%late : type)
vm.func @forward(%x: !vm.object) -> !vm.object {
  vm.goto ^second
^first:
  vm.ret %late
^second:
  %late = vm.check_tensor %x
  vm.goto ^first
}
