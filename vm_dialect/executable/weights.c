/* The weights of a shared library that are in a file beside it, or given by whoever loads it. The rows are in the
 * assembler file of `library_constants.py`; the file is described in `weight_file.py`.
 *
 * Each is looked for once: what `relax_set_weight` has given, then the file that `relax_weights_from` has named, or else
 * the file with the name of the library and ".weights". Functions with arguments have the packed calling convention.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tvm/ffi/c_api.h>
#include <unistd.h>

typedef struct {
  const char* name;
  DLManagedTensorVersioned* tensor;
  uint64_t offset;
} Row;

typedef struct {
  uint64_t size;
  unsigned char identity[16];
} File;

extern Row relax_weight_rows[];
extern const File relax_weight_file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_ready = false;
static char* path = NULL;

static int fail(const char* kind, const char* about, const char* text) {
  char message[4096];
  snprintf(message, sizeof message, "%s: %s", about, text);
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}

static int64_t bytes_of(const DLTensor* x) {
  int64_t size = (x->dtype.bits + 7) / 8;
  for (int i = 0; i < x->ndim; i++) size *= x->shape[i];
  return size;
}

static int map_file(const char* name) {
  struct stat status;
  char header[32];
  int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const char* wrong = NULL;
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    wrong = "cannot open the file of weights; load_library(path, weights=...) or relax_weights_from(path) says where it is";
  else if (read(file, header, 32) != 32 || memcmp(header, "\x89RVW\r\n\x1a\n", 8) != 0)
    wrong = "this is no file of weights";
  else if (memcmp(header + 8, relax_weight_file.identity, 16) != 0)
    wrong = "the weights are not those of this program";
  else if ((uint64_t)status.st_size != relax_weight_file.size)
    wrong = "the file of weights is cut off";
  char* memory = MAP_FAILED;
  if (wrong == NULL) {
    memory = mmap(NULL, relax_weight_file.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) wrong = "cannot map the file of weights";
  }
  if (file >= 0) close(file);
  if (wrong != NULL) return fail("RuntimeError", name, wrong);
  for (Row* row = relax_weight_rows; row->name != NULL; row++)
    if (row->tensor->dl_tensor.data == NULL) row->tensor->dl_tensor.data = memory + row->offset;
  return 0;
}

static int map_own_file(void) {
  Dl_info own;
  char name[4096];
  if (path != NULL) return map_file(path);
  if (dladdr(relax_weight_rows, &own) == 0 || own.dli_fname == NULL)
    return fail("RuntimeError", "weights", "the library does not know where it is: relax_weights_from(path) says it");
  snprintf(name, sizeof name, "%s.weights", own.dli_fname);
  return map_file(name);
}

/* Called before a constant is used. */
int relax_weights_ready(void) {
  int status = 0;
  pthread_mutex_lock(&lock);
  if (!is_ready) {
    bool is_complete = true;
    for (Row* row = relax_weight_rows; row->name != NULL; row++) is_complete &= row->tensor->dl_tensor.data != NULL;
    if (!is_complete) status = map_own_file();
    is_ready = status == 0;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static char* text_of(const TVMFFIAny* value) {
  TVMFFIByteArray found = {"", 0};
  if (value->type_index == kTVMFFISmallStr) found = (TVMFFIByteArray){value->v_bytes, value->small_str_len};
  if (value->type_index == kTVMFFIRawStr) found = (TVMFFIByteArray){value->v_c_str, strlen(value->v_c_str)};
  if (value->type_index == kTVMFFIStr) found = *(TVMFFIByteArray*)((char*)value->v_obj + sizeof(TVMFFIObject));
  char* copy = calloc(found.size + 1, 1);
  if (copy != NULL) memcpy(copy, found.data, found.size);
  return copy;
}

static int in_time(const char* about) {
  return is_ready ? fail("RuntimeError", about, "the weights are in use; give them before the first call") : 0;
}

/* relax_weights_from(path): the file with the weights that are not given one by one. */
int __tvm_ffi_relax_weights_from(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* ret) {
  (void)self, (void)ret;
  if (count != 1) return fail("TypeError", "relax_weights_from", "expected 1 argument (path)");
  pthread_mutex_lock(&lock);
  int status = in_time("relax_weights_from");
  if (status == 0) {
    free(path);
    path = text_of(args);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static int take(Row* row, const TVMFFIAny* value) {
  const DLTensor *own = &row->tensor->dl_tensor, *given = NULL;
  if (value->type_index == kTVMFFITensor) given = (DLTensor*)((char*)value->v_obj + sizeof(TVMFFIObject));
  if (given == NULL) return fail("TypeError", row->name, "expected a tensor");
  bool fits = given->ndim == own->ndim && memcmp(&given->dtype, &own->dtype, sizeof own->dtype) == 0;
  int64_t stride = 1;
  for (int i = own->ndim - 1; fits && i >= 0; i--) {
    fits = given->shape[i] == own->shape[i];
    fits &= given->strides == NULL || own->shape[i] == 1 || given->strides[i] == stride || bytes_of(own) == 0;
    stride *= own->shape[i];
  }
  if (!fits) return fail("TypeError", row->name, "expected a contiguous tensor of the shape and dtype of the weight");
  char* data = (char*)given->data + given->byte_offset;
  if (given->device.device_type != kDLCPU || (uintptr_t)data % 64 != 0) {
    return fail("ValueError", row->name, "expected memory of the CPU that is aligned to 64 bytes");
  }
  TVMFFIObjectIncRef(value->v_obj); /* for the life of the process */
  row->tensor->dl_tensor.data = data;
  return 0;
}

/* relax_set_weight(name, tensor): one weight, whose memory is used. */
int __tvm_ffi_relax_set_weight(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* ret) {
  (void)self, (void)ret;
  if (count != 2) return fail("TypeError", "relax_set_weight", "expected 2 arguments (name, tensor)");
  char* name = text_of(args);
  pthread_mutex_lock(&lock);
  int status = in_time("relax_set_weight");
  Row* row = relax_weight_rows;
  while (row->name != NULL && name != NULL && strcmp(row->name, name) != 0) row++;
  if (status == 0)
    status = row->name == NULL || name == NULL ? fail("ValueError", name ? name : "", "the library has no such weight")
                                               : take(row, args + 1);
  pthread_mutex_unlock(&lock);
  free(name);
  return status;
}
