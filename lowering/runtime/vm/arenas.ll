; Arenas: blocks of memory for the tensors of one call, cached between calls.

; A block of at least `bytes` bytes from `cache`, which then is empty: calls that run at the same time, or recursively,
; get blocks of their own. Null after an error. A block is 64-byte aligned, or from 64 KiB on begins at a page, as
; results do (`tensors.ll`): stores past the caches some lines behind what is read take half as long again.
;
; Before the block stand 64 bytes: the block's size, and the memory to free.
define ptr @vmrt_arena_take(ptr %cache, i64 %bytes) {
entry:
  %is.negative = icmp slt i64 %bytes, 0
  br i1 %is.negative, label %negative, label %exchange

exchange:
  %cached = atomicrmw xchg ptr %cache, ptr null acq_rel
  %is.empty = icmp eq ptr %cached, null
  br i1 %is.empty, label %allocate, label %measure

measure:
  %size.at = getelementptr inbounds i8, ptr %cached, i64 -64
  %size = load i64, ptr %size.at
  %fits = icmp sge i64 %size, %bytes
  br i1 %fits, label %reuse, label %drop

reuse:
  ret ptr %cached

drop:
  call void @vmrt_arena_drop(ptr %cached)
  br label %allocate

allocate:
  %result = tail call ptr @vmrt_arena_new(i64 %bytes)
  ret ptr %result

negative:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_negative_size, i64 %bytes)
  ret ptr null
}

define ptr @vmrt_arena_new(i64 %bytes) noinline {
entry:
  %place = alloca ptr
  %is.large = icmp sgt i64 %bytes, 4611686018427387904
  br i1 %is.large, label %exhausted, label %allocate

allocate:
  %starts.page = icmp uge i64 %bytes, 65536
  %gap = select i1 %starts.page, i64 4096, i64 64
  %total = add i64 %bytes, %gap
  %status = call i32 @posix_memalign(ptr %place, i64 %gap, i64 %total)
  %no.memory = icmp ne i32 %status, 0
  br i1 %no.memory, label %exhausted, label %fill

fill:
  %start = load ptr, ptr %place
  call void @vmrt_ask_for_large_pages(ptr %start, i64 %total)
  %block = getelementptr inbounds i8, ptr %start, i64 %gap
  %size.at = getelementptr inbounds i8, ptr %block, i64 -64
  store i64 %bytes, ptr %size.at
  %start.at = getelementptr inbounds i8, ptr %block, i64 -56
  store ptr %start, ptr %start.at
  ret ptr %block

exhausted:
  call void @vmrt_fail_memory(i64 %bytes)
  ret ptr null
}

; Gives a block back, or nothing if `block` is null; a block that is already in the cache is freed.
define void @vmrt_arena_give(ptr %cache, ptr %block) {
entry:
  %nothing = icmp eq ptr %block, null
  br i1 %nothing, label %done, label %exchange

exchange:
  %old = atomicrmw xchg ptr %cache, ptr %block acq_rel
  %was.empty = icmp eq ptr %old, null
  br i1 %was.empty, label %done, label %drop

drop:
  call void @vmrt_arena_drop(ptr %old)
  br label %done

done:
  ret void
}

define void @vmrt_arena_drop(ptr %block) noinline {
  %start.at = getelementptr inbounds i8, ptr %block, i64 -56
  %start = load ptr, ptr %start.at
  call void @free(ptr %start)
  ret void
}

; Frees what the `count` arena caches at `caches` hold.
define void @vmrt_arena_free(ptr %caches, i64 %count) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done

body:
  %at = getelementptr inbounds ptr, ptr %caches, i64 %i
  %block = atomicrmw xchg ptr %at, ptr null acq_rel
  %is.empty = icmp eq ptr %block, null
  br i1 %is.empty, label %step, label %drop

drop:
  call void @vmrt_arena_drop(ptr %block)
  br label %step

step:
  %next = add nuw i64 %i, 1
  br label %head

done:
  ret void
}

; Whether a tensor of four sizes, `offset` bytes into a storage of `room` bytes, fits; raises an error if not. As unsigned
; numbers, negative sizes are huge, so that they overflow or do not fit. Where it would fit if sizes of 0 were 1, it does.
define i32 @vmrt_place(i64 %room, i64 %offset, i32 %dtype, i64 %a, i64 %b, i64 %c, i64 %d) {
entry:
  %itemsize = call i64 @vmrt_itemsize(i32 %dtype)
  %a.1 = call i64 @llvm.umax.i64(i64 %a, i64 1)
  %b.1 = call i64 @llvm.umax.i64(i64 %b, i64 1)
  %c.1 = call i64 @llvm.umax.i64(i64 %c, i64 1)
  %d.1 = call i64 @llvm.umax.i64(i64 %d, i64 1)
  %1 = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %itemsize, i64 %a.1)
  %2 = extractvalue { i64, i1 } %1, 0
  %3 = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %2, i64 %b.1)
  %4 = extractvalue { i64, i1 } %3, 0
  %5 = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %4, i64 %c.1)
  %6 = extractvalue { i64, i1 } %5, 0
  %7 = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %6, i64 %d.1)
  %8 = extractvalue { i64, i1 } %7, 0
  %9 = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %8, i64 %offset)
  %end = extractvalue { i64, i1 } %9, 0
  %o1 = extractvalue { i64, i1 } %1, 1
  %o3 = extractvalue { i64, i1 } %3, 1
  %o5 = extractvalue { i64, i1 } %5, 1
  %o7 = extractvalue { i64, i1 } %7, 1
  %o9 = extractvalue { i64, i1 } %9, 1
  %o13 = or i1 %o1, %o3
  %o57 = or i1 %o5, %o7
  %o1357 = or i1 %o13, %o57
  %overflow = or i1 %o1357, %o9
  %outside = icmp ugt i64 %end, %room
  %misplaced = or i1 %overflow, %outside
  %mask = sub i64 %itemsize, 1
  %remainder = and i64 %offset, %mask
  %unaligned = icmp ne i64 %remainder, 0
  %suspect = or i1 %misplaced, %unaligned
  br i1 %suspect, label %doubt, label %fits

fits:
  ret i32 0

doubt:
  %status = tail call i32 @vmrt_place_exactly(i64 %room, i64 %offset, i32 %dtype, i64 %a, i64 %b, i64 %c, i64 %d)
  ret i32 %status
}

; A tensor without elements takes no room.
define i32 @vmrt_place_exactly(i64 %room, i64 %offset, i32 %dtype, i64 %a, i64 %b, i64 %c, i64 %d) noinline cold {
  %sizes = alloca [4 x i64]
  %at.b = getelementptr inbounds i64, ptr %sizes, i64 1
  %at.c = getelementptr inbounds i64, ptr %sizes, i64 2
  %at.d = getelementptr inbounds i64, ptr %sizes, i64 3
  store i64 %a, ptr %sizes
  store i64 %b, ptr %at.b
  store i64 %c, ptr %at.c
  store i64 %d, ptr %at.d
  %status = call i32 @vmrt_check_placement(i64 %room, i64 %offset, i32 %dtype, i64 4, ptr %sizes)
  ret i32 %status
}

; Whether a tensor of `rank` sizes, `offset` bytes into a storage of `room` bytes, fits; raises an error if not.
define i32 @vmrt_check_placement(i64 %room, i64 %offset, i32 %dtype, i64 %rank, ptr %sizes) {
entry:
  %itemsize = call i64 @vmrt_itemsize(i32 %dtype)
  %bytes = call i64 @vmrt_byte_size(i64 %itemsize, i64 %rank, ptr %sizes)
  %refused = icmp slt i64 %bytes, 0
  br i1 %refused, label %failed, label %compare

compare:
  %left = sub i64 %room, %bytes
  %fits = icmp sle i64 %offset, %left
  %starts = icmp sge i64 %offset, 0
  %ok = and i1 %fits, %starts
  br i1 %ok, label %check.address, label %outside

check.address:
  %mask = sub i64 %itemsize, 1
  %remainder = and i64 %offset, %mask
  %aligned = icmp eq i64 %remainder, 0
  br i1 %aligned, label %done, label %unaligned

done:
  ret i32 0

unaligned:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_not_aligned, ptr @vmrt_alloc_tensor_subject, i64 %itemsize, i64 %remainder)
  ret i32 -1

outside:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_out_of_storage, i64 %bytes, i64 %offset, i64 %room)
  ret i32 -1

failed:
  ret i32 -1
}
