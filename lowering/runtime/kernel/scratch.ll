; Memory that kernels use while they run: blocks that are given back are kept for the next kernel.
;
; The C library would return a block of some hundred KiB to the system as soon as it is free, and every page of the next
; one would be made anew: for matrices of 512 x 512 that is a third of the time of their product.
;
; Any number of threads take and give at the same time; each place holds a block or null, and who exchanges it owns what
; was there. In the 16 bytes before a block are its size and where the memory begins that the C library knows.

@kept = internal global [8 x ptr] zeroinitializer, align 64
@turn = internal global i32 0                   ; which place is emptied next where all are full

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

; A block of at least `bytes` bytes at a multiple of `alignment`, a power of two from 64 on. Null if the number is
; negative, or there is no memory.
define noalias ptr @relax_scratch_take(i64 %alignment, i64 %bytes) {
entry:
  %valid = icmp sge i64 %bytes, 0
  br i1 %valid, label %search, label %none

search:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %i, 8
  br i1 %more, label %look, label %new

look:
  %place = getelementptr inbounds [8 x ptr], ptr @kept, i64 0, i64 %i
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %is.empty = icmp eq ptr %seen, null
  br i1 %is.empty, label %step, label %exchange

exchange:
  %block = atomicrmw xchg ptr %place, ptr null acq_rel
  %is.gone = icmp eq ptr %block, null
  br i1 %is.gone, label %step, label %measure

measure:
  %suits = call i1 @suits(ptr %block, i64 %alignment, i64 %bytes)
  br i1 %suits, label %found, label %back

back:
  %put = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic
  %is.back = extractvalue { ptr, i1 } %put, 1
  br i1 %is.back, label %step, label %drop

drop:
  call void @drop(ptr %block)
  br label %step

step:
  %next = add nuw i64 %i, 1
  br label %search

found:
  ret ptr %block

new:
  %made = tail call ptr @make(i64 %alignment, i64 %bytes)
  ret ptr %made

none:
  ret ptr null
}

; Whether a block is large enough, and not so large that another one would miss it.
define internal i1 @suits(ptr %block, i64 %alignment, i64 %bytes) {
  %size.at = getelementptr inbounds i8, ptr %block, i64 -16
  %size = load i64, ptr %size.at, align 8
  %fits = icmp sge i64 %size, %bytes
  %half = lshr i64 %size, 1
  %is.used = icmp sle i64 %half, %bytes
  %address = ptrtoint ptr %block to i64
  %mask = sub i64 %alignment, 1
  %rest = and i64 %address, %mask
  %is.aligned = icmp eq i64 %rest, 0
  %suits = and i1 %fits, %is.used
  %all = and i1 %suits, %is.aligned
  ret i1 %all
}

define internal ptr @make(i64 %alignment, i64 %bytes) noinline {
entry:
  %is.large = icmp sgt i64 %bytes, 4611686018427387904
  br i1 %is.large, label %none, label %allocate

allocate:
  %mask = sub i64 %alignment, 1
  %above = add i64 %bytes, %mask
  %low = sub i64 0, %alignment
  %size = and i64 %above, %low
  %total = add i64 %size, %alignment
  %start = call ptr @aligned_alloc(i64 %alignment, i64 %total)
  %no.memory = icmp eq ptr %start, null
  br i1 %no.memory, label %none, label %fill

fill:
  %block = getelementptr inbounds i8, ptr %start, i64 %alignment
  %size.at = getelementptr inbounds i8, ptr %block, i64 -16
  store i64 %size, ptr %size.at, align 8
  %start.at = getelementptr inbounds i8, ptr %block, i64 -8
  store ptr %start, ptr %start.at, align 8
  ret ptr %block

none:
  ret ptr null
}

define internal void @drop(ptr %block) {
  %start.at = getelementptr inbounds i8, ptr %block, i64 -8
  %start = load ptr, ptr %start.at, align 8
  call void @free(ptr %start)
  ret void
}

; Gives a block back. Those of more than 16 MiB are not kept, so that no more than 128 MiB are.
define void @relax_scratch_give(ptr %given) {
entry:
  %size.at = getelementptr inbounds i8, ptr %given, i64 -16
  %size = load i64, ptr %size.at, align 8
  %is.large = icmp ugt i64 %size, 16777216
  br i1 %is.large, label %release, label %search

search:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %i, 8
  br i1 %more, label %look, label %full

look:
  %place = getelementptr inbounds [8 x ptr], ptr @kept, i64 0, i64 %i
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %is.empty = icmp eq ptr %seen, null
  br i1 %is.empty, label %put, label %step

put:
  %old = cmpxchg ptr %place, ptr null, ptr %given acq_rel monotonic
  %is.put = extractvalue { ptr, i1 } %old, 1
  br i1 %is.put, label %done, label %step

step:
  %next = add nuw i64 %i, 1
  br label %search

full:
  %turn = atomicrmw add ptr @turn, i32 1 monotonic
  %wide = zext i32 %turn to i64
  %oldest = and i64 %wide, 7
  %oldest.at = getelementptr inbounds [8 x ptr], ptr @kept, i64 0, i64 %oldest
  %evicted = atomicrmw xchg ptr %oldest.at, ptr %given acq_rel
  %nothing = icmp eq ptr %evicted, null
  br i1 %nothing, label %done, label %evict

evict:
  call void @drop(ptr %evicted)
  br label %done

release:
  call void @drop(ptr %given)
  br label %done

done:
  ret void
}
