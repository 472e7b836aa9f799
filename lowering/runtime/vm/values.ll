; Values: copies, releases and frames. A slot is a TVMFFIAny that owns what it holds; an argument is a borrowed one.

; Makes the empty slot `to` an owned copy of `from`.
define i32 @vmrt_copy(ptr %to, ptr %from) {
entry:
  %kind = load i32, ptr %from
  %payload.at = getelementptr inbounds %any, ptr %from, i64 0, i32 2
  %payload = load i64, ptr %payload.at
  %is.object = icmp sge i32 %kind, 64
  br i1 %is.object, label %object, label %plain

object:
  %object.at = inttoptr i64 %payload to ptr
  %old = atomicrmw add ptr %object.at, i64 1 monotonic
  br label %store

plain:
  %is.borrowed = icmp eq i32 %kind, 7
  br i1 %is.borrowed, label %borrowed, label %store

store:
  %bits = load i64, ptr %from
  store i64 %bits, ptr %to
  %to.payload = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  store i64 %payload, ptr %to.payload
  ret i32 0

borrowed:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @vmrt_type_error, ptr @vmrt_text_borrowed)
  ret i32 -1
}

; Empties a slot.
define void @vmrt_clear(ptr %slot) {
entry:
  %kind = load i32, ptr %slot
  %payload.at = getelementptr inbounds %any, ptr %slot, i64 0, i32 2
  %object = load ptr, ptr %payload.at
  store %any zeroinitializer, ptr %slot
  %is.object = icmp sge i32 %kind, 64
  br i1 %is.object, label %release, label %done

release:
  %status = call i32 @TVMFFIObjectDecRef(ptr %object)
  br label %done

done:
  ret void
}

; Moves the owned value in `from` to the slot `to`, whose old value is released; `from` is left empty.
define void @vmrt_move(ptr %to, ptr %from) {
entry:
  %kind = load i32, ptr %to
  %payload.at = getelementptr inbounds %any, ptr %to, i64 0, i32 2
  %object = load ptr, ptr %payload.at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 16, i1 false)
  store %any zeroinitializer, ptr %from
  %is.object = icmp sge i32 %kind, 64
  br i1 %is.object, label %release, label %done

release:
  %status = call i32 @TVMFFIObjectDecRef(ptr %object)
  br label %done

done:
  ret void
}

; Makes the slot `to` an owned copy of `from`; its old value is released. `to` may be `from`.
define i32 @vmrt_assign(ptr %to, ptr %from) {
  %copy = alloca %any
  %status = call i32 @vmrt_copy(ptr %copy, ptr %from)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %done, label %move

move:
  call void @vmrt_move(ptr %to, ptr %copy)
  br label %done

done:
  ret i32 %status
}

; Empties the `count` slots at `frame`.
define void @vmrt_release(ptr %frame, i64 %count) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done

body:
  %slot = getelementptr inbounds %any, ptr %frame, i64 %i
  %kind = load i32, ptr %slot
  %is.object = icmp sge i32 %kind, 64
  br i1 %is.object, label %release, label %step

release:
  call void @vmrt_clear(ptr %slot)
  br label %step

step:
  %next = add nuw i64 %i, 1
  br label %head

done:
  ret void
}

; The arguments of a packed call without rvalue references and raw strings: `args` itself where there are none, else
; `scratch`, whose `count` slots the caller releases. Null after an error, which may be that of preparing the module.
define ptr @vmrt_arguments(ptr %args, i64 %count, ptr %scratch) {
entry:
  %status = call i32 @vmrt_ready()
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %return.failed, label %head

return.failed:
  ret ptr null

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %unchanged

body:
  %at = getelementptr inbounds %any, ptr %args, i64 %i
  %kind = load i32, ptr %at
  %distance = sub i32 %kind, 8
  %is.view = icmp ult i32 %distance, 3
  %next = add nuw i64 %i, 1
  br i1 %is.view, label %copied, label %head

unchanged:
  ret ptr %args

copied:
  %result = tail call ptr @vmrt_own_arguments(ptr %args, i64 %count, ptr %scratch)
  ret ptr %result
}

; Copies every argument into `scratch`; a borrowed tensor (kind 7) stays borrowed.
define ptr @vmrt_own_arguments(ptr %args, i64 %count, ptr %scratch) noinline {
entry:
  %ready = call i32 @vmrt_ready()
  %not.ready = icmp ne i32 %ready, 0
  br i1 %not.ready, label %return.failed, label %head

return.failed:
  ret ptr null

head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done

body:
  %from = getelementptr inbounds %any, ptr %args, i64 %i
  %to = getelementptr inbounds %any, ptr %scratch, i64 %i
  %kind = load i32, ptr %from
  %is.borrowed = icmp eq i32 %kind, 7
  br i1 %is.borrowed, label %borrow, label %own

borrow:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 16, i1 false)
  br label %step

own:
  store %any zeroinitializer, ptr %to
  %status = call i32 @TVMFFIAnyViewToOwnedAny(ptr %from, ptr %to)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %undo, label %step

step:
  %next = add nuw i64 %i, 1
  br label %head

undo:
  call void @vmrt_release(ptr %scratch, i64 %i)
  ret ptr null

done:
  ret ptr %scratch
}
