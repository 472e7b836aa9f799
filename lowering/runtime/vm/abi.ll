; What the run-time support takes from the C library and from tvm-ffi.
;
; Layouts, from tvm/ffi/c_api.h and dlpack.h:
;   TVMFFIAny     { i32 type_index, i32 small_string_length, i64 payload }                        16 bytes
;   TVMFFIObject  { i64 reference_counts, i32 type_index, i32 padding, ptr deleter }              24 bytes, then the object
;   DLTensor      { ptr data, {i32, i32} device, i32 ndim, {i8, i8, i16} dtype, ptr shape, ptr strides, i64 byte_offset }
;   Shape         TVMFFIObject, { ptr data, i64 size }
;   Array         TVMFFIObject, { ptr data, i64 size, i64 capacity, ptr data_deleter }
; Every function returns 0, or -1 after it has raised a tvm-ffi error, unless its comment says otherwise. Functions of programs
; may return 1, too: see deferred.ll.

%any = type { i32, i32, i64 }
%dltensor = type { ptr, i64, i32, i32, ptr, ptr, i64 }
%managed = type { i64, ptr, ptr, i64, %dltensor }

declare ptr @malloc(i64)
declare void @free(ptr)
; Not there in a shared library, which has nobody that provides them.
declare extern_weak ptr @relax_block_take(i64)
declare extern_weak void @relax_block_give(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @clock_gettime(i32, ptr)
declare i32 @madvise(ptr, i64, i32)
declare i64 @strlen(ptr)
declare i32 @strcmp(ptr, ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @vsnprintf(ptr, i64, ptr, ptr)
declare i64 @pthread_self()
declare i32 @pthread_getattr_np(i64, ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_key_delete(i32)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)

declare i32 @TVMFFIObjectDecRef(ptr)
declare i32 @TVMFFIAnyViewToOwnedAny(ptr, ptr)
declare i32 @TVMFFIHandleInitOnce(ptr, ptr)
declare i32 @TVMFFIFunctionGetGlobal(ptr, ptr)
declare i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)
declare i32 @TVMFFIFunctionCreate(ptr, ptr, ptr, ptr)
declare i32 @TVMFFITensorFromDLPackVersioned(ptr, i32, i32, ptr)
declare i32 @TVMFFITensorCreateUnsafeView(ptr, ptr, ptr)
declare i32 @TVMFFIStringFromByteArray(ptr, ptr)
declare i32 @TVMFFIDataTypeToString(ptr, ptr)
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
declare void @TVMFFIErrorSetRaised(ptr)
declare void @TVMFFIErrorMoveFromRaised(ptr)

declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare ptr @llvm.frameaddress.p0(i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
