; The life of a module: the functions that are linked together with this code.

; A tvm-ffi function object that keeps code, constants and arenas; closures and entries hold references to it. It is
; borrowed here, since code of the module runs only while somebody holds it.
@vmrt_module = hidden global ptr null

; The constants of a shared library: an array of { ptr name, ptr DLManagedTensorVersioned } that a null name ends. A
; library defines it; code that a loader prepares gets its constants from there.
@relax_library_constants = weak global ptr null

; What provides the elements of those constants, if they are not in the library: a function that returns a status.
@relax_library_weights = weak global ptr null

declare i32 @module.init(ptr, ptr, i32, ptr)

; Makes sure that the module is prepared: by a loader, or else now.
define i32 @vmrt_ready() {
entry:
  %module = load atomic ptr, ptr @vmrt_module acquire, align 8
  %missing = icmp eq ptr %module, null
  br i1 %missing, label %start, label %done

start:
  %status = tail call i32 @vmrt_start()
  ret i32 %status

done:
  ret i32 0
}

define i32 @vmrt_start() noinline cold {
  %status = call i32 @TVMFFIHandleInitOnce(ptr @vmrt_handle, ptr @vmrt_start_module)
  ret i32 %status
}

@vmrt_handle = internal global ptr null

; Prepares the module without a loader. The module stays as long as the process.
define i32 @vmrt_start_module(ptr %result) {
  %module = alloca %any
  store %any zeroinitializer, ptr %module
  %status = call i32 @module.init(ptr null, ptr null, i32 0, ptr %module)
  %payload = getelementptr inbounds %any, ptr %module, i64 0, i32 2
  %object = load ptr, ptr %payload
  store ptr %object, ptr %result
  ret i32 %status
}

; Puts the argument `index` of the loader into the slot `to`, or if there is none, the constant `name` of the library.
define i32 @vmrt_bind_constant(ptr %to, ptr %args, i32 %count, i32 %index, ptr %name) {
entry:
  %is.given = icmp slt i32 %index, %count
  br i1 %is.given, label %copy, label %library

copy:
  %given = getelementptr inbounds %any, ptr %args, i32 %index
  %copied = call i32 @vmrt_assign(ptr %to, ptr %given)
  ret i32 %copied

library:
  %provide = load ptr, ptr @relax_library_weights
  %is.complete = icmp eq ptr %provide, null
  br i1 %is.complete, label %look, label %prepare

prepare:
  %prepared = call i32 %provide()
  %is.prepared = icmp eq i32 %prepared, 0
  br i1 %is.prepared, label %look, label %unprepared

unprepared:
  ret i32 -1

look:
  %table = load ptr, ptr @relax_library_constants
  %no.library = icmp eq ptr %table, null
  br i1 %no.library, label %missing, label %head

head:
  %i = phi i64 [ 0, %look ], [ %next, %other ]
  %row = getelementptr inbounds { ptr, ptr }, ptr %table, i64 %i
  %known = load ptr, ptr %row
  %at.end = icmp eq ptr %known, null
  br i1 %at.end, label %missing, label %compare

compare:
  %order = call i32 @strcmp(ptr %known, ptr %name)
  %same = icmp eq i32 %order, 0
  br i1 %same, label %take, label %other

other:
  %next = add nuw i64 %i, 1
  br label %head

take:
  %tensor.at = getelementptr inbounds { ptr, ptr }, ptr %row, i64 0, i32 1
  %tensor = load ptr, ptr %tensor.at
  store %any { i32 70, i32 0, i64 0 }, ptr %to
  %handle = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  %status = call i32 @TVMFFITensorFromDLPackVersioned(ptr %tensor, i32 0, i32 0, ptr %handle)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %undo, label %done

undo:
  store %any zeroinitializer, ptr %to
  ret i32 -1

done:
  ret i32 0

missing:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_missing_constant, ptr %name)
  ret i32 -1
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
; `shutdown` releases what the module holds, and then the guard goes, the first argument of the loader if there is one.
define i32 @vmrt_publish(ptr %to, ptr %args, i32 %count, ptr %info, ptr %shutdown) {
entry:
  %made = alloca %any
  %kept = alloca %any
  store %any zeroinitializer, ptr %kept
  %is.given = icmp sgt i32 %count, 0
  br i1 %is.given, label %keep, label %allocate

keep:
  %copied = call i32 @vmrt_copy(ptr %kept, ptr %args)
  br label %allocate

allocate:
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
  store atomic ptr %module, ptr @vmrt_module release, align 8
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
entry:
  %guard = load ptr, ptr %block
  %shutdown.at = getelementptr inbounds i8, ptr %block, i64 8
  %shutdown = load ptr, ptr %shutdown.at
  call void %shutdown()
  call void @free(ptr %block)
  %unguarded = icmp eq ptr %guard, null
  br i1 %unguarded, label %done, label %release

release:
  %status = musttail call i32 @TVMFFIObjectDecRef(ptr %guard)
  ret i32 %status

done:
  ret i32 0
}
