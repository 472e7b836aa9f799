; Calls of function values in tail position. The function that ends with one leaves it to its caller: it returns 1, and its
; result's slot has a deferred call, a block { ptr next, ptr then, i64 arguments, i64 captured }, then values: the callee, the
; arguments, what is captured for `then`, and room for a result. `then` is null, or the packed entry of a function that
; checks the result; before that it takes what is captured, which are numbers.
;
; Whoever calls such a function finishes the call: no frame of the function is left by then, so that calls of functions
; that end with each other use no more stack than one of them.

; Puts a deferred call into the slot `to`. `values` are the callee, the arguments and what is captured; they are copied.
define i32 @vmrt_defer(ptr %to, ptr %values, i64 %arguments, ptr %then, i64 %captured) {
entry:
  %made = alloca %any
  %kind = load i32, ptr %values
  %is.function = icmp eq i32 %kind, 68
  br i1 %is.function, label %allocate, label %wrong

allocate:
  %given = add i64 %arguments, 1
  %count = add i64 %given, %captured
  %words = shl i64 %count, 4
  %bytes = add i64 %words, 48
  %block = call ptr @malloc(i64 %bytes)
  %no.memory = icmp eq ptr %block, null
  br i1 %no.memory, label %exhausted, label %fill

fill:
  %then.at = getelementptr inbounds i8, ptr %block, i64 8
  store ptr %then, ptr %then.at
  %arguments.at = getelementptr inbounds i8, ptr %block, i64 16
  store i64 %arguments, ptr %arguments.at
  %captured.at = getelementptr inbounds i8, ptr %block, i64 24
  store i64 %captured, ptr %captured.at
  %own = getelementptr inbounds i8, ptr %block, i64 32
  %copies = call ptr @vmrt_own_arguments(ptr %values, i64 %count, ptr %own)
  %copy.failed = icmp eq ptr %copies, null
  br i1 %copy.failed, label %undo, label %finish

finish:
  store %any { i32 4, i32 0, i64 0 }, ptr %made
  %payload = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  store ptr %block, ptr %payload
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

undo:
  call void @free(ptr %block)
  ret i32 -1

exhausted:
  call void @vmrt_fail_memory(i64 %bytes)
  ret i32 -1

wrong:
  call void @vmrt_fail_kind(ptr %values, ptr @vmrt_text_not_function, ptr @vmrt_invoke_closure_subject)
  ret i32 -1
}

; The status of a call whose result goes to the slot `to`, after what it has deferred.
define i32 @vmrt_finish(i32 %status, ptr %to) {
entry:
  %is.deferred = icmp sgt i32 %status, 0
  br i1 %is.deferred, label %run, label %done

run:
  %finished = tail call i32 @vmrt_run_deferred(ptr %to)
  ret i32 %finished

done:
  ret i32 %status
}

; The same in a packed entry: if a closure calls it, the closure decides who finishes.
define i32 @vmrt_finish_entry(ptr %self, i32 %status, ptr %to) {
entry:
  %by.closure = icmp eq ptr %self, @vmrt_enter_closure
  br i1 %by.closure, label %done, label %finish

finish:
  %finished = tail call i32 @vmrt_finish(i32 %status, ptr %to)
  ret i32 %finished

done:
  ret i32 %status
}

; Runs the deferred call in the slot `to`, and what that defers, one after the other; then checks the result, the latest check
; first. A check that is the same as the one before it is made once.
define i32 @vmrt_run_deferred(ptr %to) noinline {
entry:
  %payload = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  br label %head

head:
  %later = phi ptr [ null, %entry ], [ %kept, %head ]
  %block = load ptr, ptr %payload
  store %any zeroinitializer, ptr %to
  %status = call i32 @vmrt_call_deferred(ptr %block, ptr %to)
  %kept = call ptr @vmrt_keep_check(ptr %block, ptr %later)
  %again = icmp sgt i32 %status, 0
  br i1 %again, label %head, label %check

check:
  %checks = phi ptr [ %kept, %head ], [ %rest, %checked ]
  %so.far = phi i32 [ %status, %head ], [ %result, %checked ]
  %is.last = icmp eq ptr %checks, null
  br i1 %is.last, label %done, label %look

look:
  %rest = load ptr, ptr %checks
  %ok = icmp eq i32 %so.far, 0
  br i1 %ok, label %apply, label %checked

apply:
  %applied = call i32 @vmrt_apply_check(ptr %checks, ptr %to)
  br label %checked

checked:
  %result = phi i32 [ %so.far, %look ], [ %applied, %apply ]
  call void @free(ptr %checks)
  br label %check

done:
  ret i32 %so.far
}

; Calls the function of a deferred call, and releases its arguments. A closure of this module defers once more rather than
; to finish: it is told, by its handle, that it is called from here.
define i32 @vmrt_call_deferred(ptr %block, ptr %to) {
  %count.at = getelementptr inbounds i8, ptr %block, i64 16
  %count = load i64, ptr %count.at
  %count32 = trunc i64 %count to i32
  %handle.at = getelementptr inbounds i8, ptr %block, i64 40
  %handle = load ptr, ptr %handle.at
  %values = getelementptr inbounds i8, ptr %block, i64 32
  %arguments = getelementptr inbounds i8, ptr %block, i64 48
  call void @vmrt_await(ptr %handle)
  %status = call i32 @TVMFFIFunctionCall(ptr %handle, ptr %arguments, i32 %count32, ptr %to)
  call void @vmrt_await(ptr null)
  %given = add i64 %count, 1
  call void @vmrt_release(ptr %values, i64 %given)
  ret i32 %status
}

; The checks that wait for a result, after the call of `block` has been made; `later` are those so far, the latest first. The
; block is freed if it adds none.
define ptr @vmrt_keep_check(ptr %block, ptr %later) {
entry:
  %then.at = getelementptr inbounds i8, ptr %block, i64 8
  %then = load ptr, ptr %then.at
  %is.none = icmp eq ptr %then, null
  br i1 %is.none, label %drop, label %look

look:
  %is.first = icmp eq ptr %later, null
  br i1 %is.first, label %push, label %compare

compare:
  %other.at = getelementptr inbounds i8, ptr %later, i64 8
  %other = load ptr, ptr %other.at
  %same.function = icmp eq ptr %then, %other
  br i1 %same.function, label %compare.values, label %push

compare.values:
  %mine = call ptr @vmrt_captured(ptr %block)
  %others = call ptr @vmrt_captured(ptr %later)
  %captured.at = getelementptr inbounds i8, ptr %block, i64 24
  %captured = load i64, ptr %captured.at
  %bytes = shl i64 %captured, 4
  %order = call i32 @memcmp(ptr %mine, ptr %others, i64 %bytes)
  %same = icmp eq i32 %order, 0
  br i1 %same, label %drop, label %push

push:
  store ptr %later, ptr %block
  ret ptr %block

drop:
  call void @free(ptr %block)
  ret ptr %later
}

; Where a deferred call has what is captured for the check.
define ptr @vmrt_captured(ptr %block) {
  %count.at = getelementptr inbounds i8, ptr %block, i64 16
  %count = load i64, ptr %count.at
  %arguments = getelementptr inbounds i8, ptr %block, i64 48
  %captured = getelementptr inbounds %any, ptr %arguments, i64 %count
  ret ptr %captured
}

; Puts what the check of a deferred call makes of the result in the slot `to` into that slot.
define i32 @vmrt_apply_check(ptr %block, ptr %to) {
  %then.at = getelementptr inbounds i8, ptr %block, i64 8
  %then = load ptr, ptr %then.at
  %count.at = getelementptr inbounds i8, ptr %block, i64 24
  %count = load i64, ptr %count.at
  %captured = call ptr @vmrt_captured(ptr %block)
  %result = getelementptr inbounds %any, ptr %captured, i64 %count
  store %any zeroinitializer, ptr %result
  call void @vmrt_move(ptr %result, ptr %to)
  %given = add i64 %count, 1
  %given32 = trunc i64 %given to i32
  %status = call i32 %then(ptr null, ptr %captured, i32 %given32, ptr %to)
  call void @vmrt_clear(ptr %result)
  ret i32 %status
}
