; Closures.

; A closure's block: { ptr entry, ptr module, i64 count, ptr handle }, then `count` captured values. The handle is that of the
; function object that has the block.
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
  %object = load ptr, ptr %handle
  %own.handle = getelementptr inbounds i8, ptr %block, i64 24
  store ptr %object, ptr %own.handle
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

undo:
  %ignored = call i32 @vmrt_delete_closure(ptr %block)
  ret i32 -1

exhausted:
  call void @vmrt_fail_memory(i64 %bytes)
  ret i32 -1
}

; The packed entry of a closure. It says so to the target, which may then leave a call to it (see deferred.ll); who runs deferred
; calls himself, and has called this closure by its handle, gets it from here in turn.
define i32 @vmrt_enter_closure(ptr %self, ptr %args, i32 %count, ptr %result) {
entry:
  %target = load ptr, ptr %self
  %captured.at = getelementptr inbounds i8, ptr %self, i64 16
  %captured = load i64, ptr %captured.at
  %handle.at = getelementptr inbounds i8, ptr %self, i64 24
  %handle = load ptr, ptr %handle.at
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
  %is.awaited = call i1 @vmrt_take_awaited(ptr %handle)
  %status = call i32 %target(ptr @vmrt_enter_closure, ptr %all, i32 %total32, ptr %result)
  br i1 %is.awaited, label %done, label %finish

finish:
  %finished = call i32 @vmrt_finish(i32 %status, ptr %result)
  ret i32 %finished

done:
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
