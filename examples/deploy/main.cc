// Runs an exported library on data of its own: nothing but tvm-ffi is linked.
//
//   relax-translate examples/mvp.mlir -o mvp.so
//   deploy ./mvp.so myfunc

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdlib>
#include <iostream>
#include <vector>

namespace ffi = tvm::ffi;

// Memory for tensors: aligned as vectors of AVX-512 are.
struct Allocator {
  void AllocData(DLTensor* tensor) { tensor->data = std::aligned_alloc(64, (ffi::GetDataSize(*tensor) + 63) / 64 * 64); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: deploy LIBRARY FUNCTION\n";
    return 2;
  }
  try {
    ffi::Module library = ffi::Module::LoadFromFile(argv[1]);
    ffi::Optional<ffi::Function> function = library->GetFunction(argv[2]);
    if (!function.has_value()) {
      std::cerr << argv[1] << " has no function " << argv[2] << "\n";
      return 1;
    }
    // Any size: the program checks the shapes of its arguments, and says what is wrong with them.
    for (int64_t rows : {2, 3}) {
      ffi::Tensor x = ffi::Tensor::FromNDAlloc(Allocator(), ffi::Shape({rows, 4}), DLDataType{kDLFloat, 32, 1},
                                               DLDevice{kDLCPU, 0});
      for (int64_t i = 0; i < rows * 4; i++) static_cast<float*>(x.data_ptr())[i] = static_cast<float>(i);
      ffi::Tensor y = function.value()(x).cast<ffi::Tensor>();
      std::cout << argv[2] << ":";
      for (int64_t i = 0; i < y.numel() && i < 4; i++) std::cout << " " << static_cast<float*>(y.data_ptr())[i];
      std::cout << (y.numel() > 4 ? " ...\n" : "\n");
    }
  } catch (const ffi::Error& error) {
    std::cerr << error.kind() << ": " << error.message() << "\n";
    return 1;
  }
}
