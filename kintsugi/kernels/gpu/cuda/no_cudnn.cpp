// Where the headers of cuDNN, or of its frontend, are not: attention is by our own kernels.
#include "kintsugi/kernels/gpu/attention_library.h"

namespace kintsugi::kernels {

bool cudnn_attention(const LibraryAttention&, device::Stream&) {
  return false;
}

}  // namespace kintsugi::kernels
