; Packed functions: how they are found and called, and those that every module has.

; Looks up the global function called by the `length` bytes at `name`, which a zero byte ends, and puts it into the slot `to`.
define i32 @vmrt_load_packed(ptr %to, ptr %name, i64 %length) {
entry:
  %bytes = alloca { ptr, i64 }
  %found = alloca ptr
  store ptr %name, ptr %bytes
  %length.at = getelementptr inbounds { ptr, i64 }, ptr %bytes, i64 0, i32 1
  store i64 %length, ptr %length.at
  store ptr null, ptr %found
  %status = call i32 @TVMFFIFunctionGetGlobal(ptr %bytes, ptr %found)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %return.failed, label %check

check:
  %handle = load ptr, ptr %found
  %missing = icmp eq ptr %handle, null
  br i1 %missing, label %unknown, label %store

store:
  store %any { i32 68, i32 0, i64 0 }, ptr %to
  %payload = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  store ptr %handle, ptr %payload
  ret i32 0

unknown:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_unknown_packed, ptr %name, ptr %name)
  ret i32 -1

return.failed:
  ret i32 -1
}

; The functions of a shared library: an array of { ptr name, ptr function } that a null name ends. A library that needs
; some defines it; a process with the virtual machine has them in the registry.
@relax_library_functions = weak global ptr null

; Puts the function of the library that is called `name` into the slot `to`; returns 1 if there is none of this name.
define i32 @vmrt_library_function(ptr %to, ptr %name) {
entry:
  %table = load ptr, ptr @relax_library_functions
  %no.library = icmp eq ptr %table, null
  br i1 %no.library, label %none, label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %row = getelementptr inbounds { ptr, ptr }, ptr %table, i64 %i
  %known = load ptr, ptr %row
  %at.end = icmp eq ptr %known, null
  br i1 %at.end, label %none, label %compare

compare:
  %order = call i32 @strcmp(ptr %known, ptr %name)
  %same = icmp eq i32 %order, 0
  br i1 %same, label %make, label %other

other:
  %next = add nuw i64 %i, 1
  br label %head

make:
  %function.at = getelementptr inbounds { ptr, ptr }, ptr %row, i64 0, i32 1
  %function = load ptr, ptr %function.at
  store %any { i32 68, i32 0, i64 0 }, ptr %to
  %handle = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  %status = call i32 @TVMFFIFunctionCreate(ptr null, ptr %function, ptr null, ptr %handle)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %undo, label %done

undo:
  store %any zeroinitializer, ptr %to
  ret i32 -1

done:
  ret i32 0

none:
  ret i32 1
}

; Puts the argument `index` of the loader into the slot `to` if it is a function, else that of the library called `name`,
; else the global one.
define i32 @vmrt_bind_packed(ptr %to, ptr %args, i32 %count, i32 %index, ptr %name, i64 %length) {
entry:
  %is.given = icmp slt i32 %index, %count
  br i1 %is.given, label %look, label %lookup

look:
  %given = getelementptr inbounds %any, ptr %args, i32 %index
  %kind = load i32, ptr %given
  %is.function = icmp eq i32 %kind, 68
  br i1 %is.function, label %copy, label %lookup

copy:
  %copied = call i32 @vmrt_assign(ptr %to, ptr %given)
  ret i32 %copied

lookup:
  %own = call i32 @vmrt_library_function(ptr %to, ptr %name)
  %is.missing = icmp eq i32 %own, 1
  br i1 %is.missing, label %registry, label %return

return:
  ret i32 %own

registry:
  %found = call i32 @vmrt_load_packed(ptr %to, ptr %name, i64 %length)
  ret i32 %found
}

; Calls the function in `callee`; the result goes to the slot `to`. `args` are borrowed.
define i32 @vmrt_call(ptr %to, ptr %callee, ptr %args, i32 %count) {
entry:
  %kind = load i32, ptr %callee
  %is.function = icmp eq i32 %kind, 68
  br i1 %is.function, label %call, label %wrong

call:
  %handle.at = getelementptr inbounds %any, ptr %callee, i64 0, i32 2
  %handle = load ptr, ptr %handle.at
  %result = alloca %any
  store %any zeroinitializer, ptr %result
  %status = call i32 @TVMFFIFunctionCall(ptr %handle, ptr %args, i32 %count, ptr %result)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %return.failed, label %finish

finish:
  call void @vmrt_move(ptr %to, ptr %result)
  ret i32 0

return.failed:
  call void @vmrt_require_error()
  ret i32 -1

wrong:
  call void @vmrt_fail_kind(ptr %callee, ptr @vmrt_text_not_function, ptr @vmrt_invoke_closure_subject)
  ret i32 -1
}

; The constructors of shapes and tuples.
@vmrt_shape_function = hidden global %any zeroinitializer
@vmrt_array_function = hidden global %any zeroinitializer

; Finds the constructors; called once per module before anything else.
define i32 @vmrt_init() {
entry:
  %shape = call i32 @vmrt_load_packed(ptr @vmrt_shape_function, ptr @vmrt_shape_function_name, i64 9)
  %failed = icmp ne i32 %shape, 0
  br i1 %failed, label %return, label %next

next:
  %array = call i32 @vmrt_load_packed(ptr @vmrt_array_function, ptr @vmrt_array_function_name, i64 9)
  br label %return

return:
  %status = phi i32 [ %shape, %entry ], [ %array, %next ]
  ret i32 %status
}

; Gives back what `vmrt_init` and `vmrt_stack_init` took.
define void @vmrt_shutdown() {
  call void @vmrt_clear(ptr @vmrt_shape_function)
  call void @vmrt_clear(ptr @vmrt_array_function)
  call void @vmrt_stack_free()
  ret void
}

; The key of the blocks of stack.ll.
@vmrt_stack_key = hidden global i32 -1

; Gives the key back. A thread that is still alive keeps its block of 16 bytes.
define void @vmrt_stack_free() {
  %key = load i32, ptr @vmrt_stack_key
  %unused = icmp eq i32 %key, -1
  br i1 %unused, label %done, label %delete

delete:
  %own = call ptr @pthread_getspecific(i32 %key)
  call void @free(ptr %own)
  %status = call i32 @pthread_key_delete(i32 %key)
  br label %done

done:
  ret void
}
