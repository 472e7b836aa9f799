; Calls through tvm-ffi, closures, and the life of a loaded module.

; The module: a tvm-ffi function object that keeps code, constants and arenas; closures and entries hold references to it.
; It is borrowed here, since code of the module runs only while somebody holds it.
@vmrt_module = internal global ptr null

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
  ret i32 -1

wrong:
  call void @vmrt_fail_kind(ptr %callee, ptr @vmrt_text_not_function, ptr @vmrt_invoke_closure_subject)
  ret i32 -1
}

; A closure's block: { ptr entry, ptr module, i64 count, i64 unused }, then `count` captured values.
;
; Puts into the slot `to` a function that calls the packed entry `target` with `captured` before its own arguments.
define i32 @vmrt_make_closure(ptr %to, ptr %target, ptr %captured, i64 %count) {
entry:
  %made = alloca %any
  %words = shl i64 %count, 4
  %bytes = add i64 %words, 32
  %block = call ptr @malloc(i64 %bytes)
  %no.memory = icmp eq ptr %block, null
  br i1 %no.memory, label %exhausted, label %fill

fill:
  %module = load ptr, ptr @vmrt_module
  %old = atomicrmw add ptr %module, i64 1 monotonic
  store ptr %target, ptr %block
  %module.at = getelementptr inbounds i8, ptr %block, i64 8
  store ptr %module, ptr %module.at
  %count.at = getelementptr inbounds i8, ptr %block, i64 16
  store i64 0, ptr %count.at
  %values = getelementptr inbounds i8, ptr %block, i64 32
  br label %head

head:
  %i = phi i64 [ 0, %fill ], [ %next, %step ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %create

body:
  %from = getelementptr inbounds %any, ptr %captured, i64 %i
  %value = getelementptr inbounds %any, ptr %values, i64 %i
  %copied = call i32 @vmrt_copy(ptr %value, ptr %from)
  %copy.failed = icmp ne i32 %copied, 0
  br i1 %copy.failed, label %undo, label %step

step:
  %next = add nuw i64 %i, 1
  store i64 %next, ptr %count.at
  br label %head

create:
  store %any { i32 68, i32 0, i64 0 }, ptr %made
  %handle = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  %status = call i32 @TVMFFIFunctionCreate(ptr %block, ptr @vmrt_enter_closure, ptr @vmrt_delete_closure, ptr %handle)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %undo, label %finish

finish:
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

undo:
  %ignored = call i32 @vmrt_delete_closure(ptr %block)
  ret i32 -1

exhausted:
  call void @vmrt_fail_memory(i64 %bytes)
  ret i32 -1
}

; The packed entry of a closure.
define i32 @vmrt_enter_closure(ptr %self, ptr %args, i32 %count, ptr %result) {
  %target = load ptr, ptr %self
  %captured.at = getelementptr inbounds i8, ptr %self, i64 16
  %captured = load i64, ptr %captured.at
  %values = getelementptr inbounds i8, ptr %self, i64 32
  %count64 = zext i32 %count to i64
  %total = add i64 %captured, %count64
  %all = alloca %any, i64 %total
  %captured.bytes = shl i64 %captured, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %all, ptr %values, i64 %captured.bytes, i1 false)
  %rest = getelementptr inbounds %any, ptr %all, i64 %captured
  %args.bytes = shl i64 %count64, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %args.bytes, i1 false)
  %total32 = trunc i64 %total to i32
  %status = call i32 %target(ptr null, ptr %all, i32 %total32, ptr %result)
  ret i32 %status
}

; The deleter of a closure. The last reference to the module may go with it, and this code with the module: the call is
; a tail call, so that nothing returns here.
define i32 @vmrt_delete_closure(ptr %block) {
  %module.at = getelementptr inbounds i8, ptr %block, i64 8
  %module = load ptr, ptr %module.at
  %count.at = getelementptr inbounds i8, ptr %block, i64 16
  %count = load i64, ptr %count.at
  %values = getelementptr inbounds i8, ptr %block, i64 32
  call void @vmrt_release(ptr %values, i64 %count)
  call void @free(ptr %block)
  %status = musttail call i32 @TVMFFIObjectDecRef(ptr %module)
  ret i32 %status
}

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

; Puts `given` into the slot `to` if it is a function, else the global function called `name`.
define i32 @vmrt_bind_packed(ptr %to, ptr %given, ptr %name, i64 %length) {
entry:
  %kind = load i32, ptr %given
  %is.function = icmp eq i32 %kind, 68
  br i1 %is.function, label %copy, label %lookup

copy:
  %copied = call i32 @vmrt_assign(ptr %to, ptr %given)
  ret i32 %copied

lookup:
  %found = call i32 @vmrt_load_packed(ptr %to, ptr %name, i64 %length)
  ret i32 %found
}

; Puts the string of `length` bytes at `data` into the slot `to`.
define i32 @vmrt_load_string(ptr %to, ptr %data, i64 %length) {
  %bytes = alloca { ptr, i64 }
  store ptr %data, ptr %bytes
  %length.at = getelementptr inbounds { ptr, i64 }, ptr %bytes, i64 0, i32 1
  store i64 %length, ptr %length.at
  %status = call i32 @TVMFFIStringFromByteArray(ptr %bytes, ptr %to)
  ret i32 %status
}

; The module's block: { ptr guard, ptr shutdown }. The guard is an object of the loader that owns the code.
;
; Puts the module, a function that calls the packed entry `info`, into the slot `to`. When its last reference goes,
; `shutdown` releases what the module holds, and then the guard goes.
define i32 @vmrt_publish(ptr %to, ptr %guard, ptr %info, ptr %shutdown) {
entry:
  %made = alloca %any
  %kept = alloca %any
  %copied = call i32 @vmrt_copy(ptr %kept, ptr %guard)
  %block = call ptr @malloc(i64 16)
  %no.memory = icmp eq ptr %block, null
  br i1 %no.memory, label %exhausted, label %fill

fill:
  %object.at = getelementptr inbounds %any, ptr %kept, i64 0, i32 2
  %object = load ptr, ptr %object.at
  store ptr %object, ptr %block
  %shutdown.at = getelementptr inbounds i8, ptr %block, i64 8
  store ptr %shutdown, ptr %shutdown.at
  store %any { i32 68, i32 0, i64 0 }, ptr %made
  %handle = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  %status = call i32 @TVMFFIFunctionCreate(ptr %block, ptr %info, ptr @vmrt_delete_module, ptr %handle)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %undo, label %finish

finish:
  %module = load ptr, ptr %handle
  store ptr %module, ptr @vmrt_module
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

undo:
  call void @free(ptr %block)
  call void @vmrt_clear(ptr %kept)
  ret i32 -1

exhausted:
  call void @vmrt_clear(ptr %kept)
  call void @vmrt_fail_memory(i64 16)
  ret i32 -1
}

; The deleter of a module. With the guard goes this code: nothing returns here.
define i32 @vmrt_delete_module(ptr %block) {
  %guard = load ptr, ptr %block
  %shutdown.at = getelementptr inbounds i8, ptr %block, i64 8
  %shutdown = load ptr, ptr %shutdown.at
  call void %shutdown()
  call void @free(ptr %block)
  %status = musttail call i32 @TVMFFIObjectDecRef(ptr %guard)
  ret i32 %status
}
