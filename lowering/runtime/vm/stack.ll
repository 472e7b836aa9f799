; The guard against recursion that is too deep. Each thread has a block { ptr limit, i64 depth, ptr awaited }: the lowest address
; of its stack that a function may start at, how many guarded calls are inside each other, and the handle of the closure that
; a deferred call is about to enter.

; Prepares the guard; modules without recursion do not call it.
define i32 @vmrt_stack_init() {
  %status = call i32 @pthread_key_create(ptr @vmrt_stack_key, ptr @free)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %exhausted, label %done

exhausted:
  store i32 -1, ptr @vmrt_stack_key
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @vmrt_runtime_error, ptr @vmrt_text_thread_keys)
  ret i32 -1

done:
  ret i32 0
}

; Counts a call of `function`, a C string; an error if the stack has no room for it.
define i32 @vmrt_stack_enter(ptr %function) {
entry:
  %key = load i32, ptr @vmrt_stack_key
  %known = call ptr @pthread_getspecific(i32 %key)
  %is.new = icmp eq ptr %known, null
  br i1 %is.new, label %create, label %compare

create:
  %created = call ptr @vmrt_stack_measure()
  %status = call i32 @pthread_setspecific(i32 %key, ptr %created)
  %no.memory = icmp eq ptr %created, null
  br i1 %no.memory, label %exhausted, label %compare

compare:
  %thread = phi ptr [ %known, %entry ], [ %created, %create ]
  %limit = load i64, ptr %thread
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %frame to i64
  %depth.at = getelementptr inbounds i8, ptr %thread, i64 8
  %depth = load i64, ptr %depth.at
  %is.deep = icmp ult i64 %here, %limit
  br i1 %is.deep, label %fail, label %count

count:
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr %depth.at
  ret i32 0

fail:
  %is.first = icmp eq i64 %depth, 0
  br i1 %is.first, label %fail.first, label %fail.deep

fail.deep:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_recursion_error, ptr @vmrt_text_too_deep, ptr %function, i64 %depth)
  ret i32 -1

fail.first:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_recursion_error, ptr @vmrt_text_no_stack, ptr %function)
  ret i32 -1

exhausted:
  call void @vmrt_fail_memory(i64 24)
  ret i32 -1
}

; Ends a call that `vmrt_stack_enter` has counted.
define void @vmrt_stack_leave() {
  %key = load i32, ptr @vmrt_stack_key
  %thread = call ptr @pthread_getspecific(i32 %key)
  %depth.at = getelementptr inbounds i8, ptr %thread, i64 8
  %depth = load i64, ptr %depth.at
  %less = sub i64 %depth, 1
  store i64 %less, ptr %depth.at
  ret void
}

; Says that the closure with this handle is called next. The thread has its block: only guarded functions defer calls.
define void @vmrt_await(ptr %handle) {
  %key = load i32, ptr @vmrt_stack_key
  %thread = call ptr @pthread_getspecific(i32 %key)
  %awaited.at = getelementptr inbounds i8, ptr %thread, i64 16
  store ptr %handle, ptr %awaited.at
  ret void
}

; Whether the closure with this handle is the one of which `vmrt_await` was told; it is expected once.
define i1 @vmrt_take_awaited(ptr %handle) {
entry:
  %key = load i32, ptr @vmrt_stack_key
  %unused = icmp eq i32 %key, -1
  br i1 %unused, label %no, label %find

find:
  %thread = call ptr @pthread_getspecific(i32 %key)
  %is.new = icmp eq ptr %thread, null
  br i1 %is.new, label %no, label %compare

compare:
  %awaited.at = getelementptr inbounds i8, ptr %thread, i64 16
  %awaited = load ptr, ptr %awaited.at
  %same = icmp eq ptr %awaited, %handle
  br i1 %same, label %take, label %no

take:
  store ptr null, ptr %awaited.at
  ret i1 true

no:
  ret i1 false
}

; A block for this thread, or null. A quarter of the stack, 256 KiB at most, is kept free below the limit, for kernels,
; packed functions and error handling. The limit is 0, which refuses nothing, if the system does not tell it.
define ptr @vmrt_stack_measure() noinline cold {
entry:
  %attributes = alloca [128 x i8], align 16
  %low = alloca i64
  %size = alloca i64
  %block = call ptr @malloc(i64 24)
  %no.memory = icmp eq ptr %block, null
  br i1 %no.memory, label %done, label %ask

ask:
  %depth.at = getelementptr inbounds i8, ptr %block, i64 8
  %awaited.at = getelementptr inbounds i8, ptr %block, i64 16
  store i64 0, ptr %block
  store i64 0, ptr %depth.at
  store ptr null, ptr %awaited.at
  %thread = call i64 @pthread_self()
  %status = call i32 @pthread_getattr_np(i64 %thread, ptr %attributes)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %done, label %read

read:
  %got = call i32 @pthread_attr_getstack(ptr %attributes, ptr %low, ptr %size)
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %start = load i64, ptr %low
  %bytes = load i64, ptr %size
  %quarter = lshr i64 %bytes, 2
  %is.large = icmp ugt i64 %quarter, 262144
  %reserve = select i1 %is.large, i64 262144, i64 %quarter
  %limit = add i64 %start, %reserve
  store i64 %limit, ptr %block
  br label %done

done:
  ret ptr %block
}
