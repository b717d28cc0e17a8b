// Used if the headers of cuDNN or its frontend are missing: attention uses our own kernels.
#include "kintsugi/kernels/gpu/attention_library.h"

namespace kintsugi::kernels {

bool cudnn_attention(const LibraryAttention&, device::Stream&) {
  return false;
}

}  // namespace kintsugi::kernels
