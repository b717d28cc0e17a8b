// Used if the headers of cuDNN or its frontend are missing: attention and convolutions use our own kernels.
#include "kintsugi/kernels/gpu/attention_library.h"
#include "kintsugi/kernels/gpu/convolution_library.h"

namespace kintsugi::kernels {

bool cudnn_attention(const LibraryAttention&, device::Stream&) {
  return false;
}
bool cudnn_convolution(const LibraryConvolution&, device::Stream&) {
  return false;
}

}  // namespace kintsugi::kernels
