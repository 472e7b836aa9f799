; What kernels call, for an emulator: threads that run one after the other, workspace that is taken from one array, and
; the functions of the C library that LLVM makes calls of.

@workspace = internal global [16777216 x i8] zeroinitializer, align 4096
@taken = internal global i64 0

define i32 @relax_max_threads() {
  ret i32 2
}

define void @relax_parallel(ptr %body, ptr %context, i64 %lower, i64 %upper, i32 %threads) {
  %sum = add i64 %lower, %upper
  %middle = ashr i64 %sum, 1
  %has_two = icmp slt i64 %lower, %middle
  br i1 %has_two, label %first, label %rest
first:
  call void %body(ptr %context, i64 %lower, i64 %middle)
  br label %rest
rest:
  %has_one = icmp slt i64 %middle, %upper
  br i1 %has_one, label %second, label %done
second:
  call void %body(ptr %context, i64 %middle, i64 %upper)
  br label %done
done:
  ret void
}

define ptr @relax_scratch_take(i64 %alignment, i64 %bytes) {
  %taken = load i64, ptr @taken
  %up = add i64 %taken, 4095
  %start = and i64 %up, -4096
  %end = add i64 %start, %bytes
  store i64 %end, ptr @taken
  %fits = icmp ule i64 %end, 16777216
  %address = getelementptr i8, ptr @workspace, i64 %start
  %given = select i1 %fits, ptr %address, ptr null
  ret ptr %given
}

define void @relax_scratch_give(ptr %block) {
  %base = ptrtoint ptr @workspace to i64
  %address = ptrtoint ptr %block to i64
  %start = sub i64 %address, %base
  store i64 %start, ptr @taken
  ret void
}

define void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %message) {
  ret void
}

define i64 @strlen(ptr %text) noinline optnone {
  br label %next
next:
  %length = phi i64 [ 0, %0 ], [ %more, %next ]
  %address = getelementptr i8, ptr %text, i64 %length
  %byte = load volatile i8, ptr %address
  %more = add i64 %length, 1
  %is_end = icmp eq i8 %byte, 0
  br i1 %is_end, label %done, label %next
done:
  ret i64 %length
}

define ptr @memset(ptr %target, i32 %value, i64 %bytes) noinline optnone {
  %byte = trunc i32 %value to i8
  br label %head
head:
  %index = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %index, %bytes
  br i1 %more, label %body, label %done
body:
  %to = getelementptr i8, ptr %target, i64 %index
  store volatile i8 %byte, ptr %to
  %next = add i64 %index, 1
  br label %head
done:
  ret ptr %target
}

define ptr @memcpy(ptr %target, ptr %source, i64 %bytes) noinline optnone {
  br label %head
head:
  %index = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %index, %bytes
  br i1 %more, label %body, label %done
body:
  %from = getelementptr i8, ptr %source, i64 %index
  %byte = load volatile i8, ptr %from
  %to = getelementptr i8, ptr %target, i64 %index
  store volatile i8 %byte, ptr %to
  %next = add i64 %index, 1
  br label %head
done:
  ret ptr %target
}
