#include "kintsugi/kernels/adamw8.h"

#include <cstring>
#include <vector>

#include "kintsugi/kernels/reference/optimizers.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

std::vector<uint8_t> codes_of(const View& view) {
  std::vector<uint8_t> codes(static_cast<size_t>(view.elements()));
  std::memcpy(codes.data(), view.data, codes.size());
  return codes;
}

}  // namespace

void adamw8(const KernelCall& call) {
  using In = Adamw8In;
  using Out = Adamw8Out;
  std::vector<double> w = load(call.ins[In::kW]), m_scale = load(call.ins[In::kMScale]),
                      v_scale = load(call.ins[In::kVScale]);
  const std::vector<double> g = load(call.ins[In::kG]);
  std::vector<uint8_t> m = codes_of(call.ins[In::kM]), v = codes_of(call.ins[In::kV]);
  if (load_scalar(call.ins[In::kFinite]) != 0) {
    const Adamw8Step step = adamw8_step(call);
    for (size_t block = 0, at = 0; at < w.size(); ++block, at += tensor::kStateBlock)
      adamw8_block<double>(step, std::min<int64_t>(tensor::kStateBlock, static_cast<int64_t>(w.size() - at)), &w[at],
                           &g[at], &m[at], &v[at], m_scale[block], v_scale[block]);
  }
  store(call, Out::kW, w);
  std::memcpy(call.outs[Out::kM].data, m.data(), m.size());
  std::memcpy(call.outs[Out::kV].data, v.data(), v.size());
  store(call, Out::kMScale, m_scale);
  store(call, Out::kVScale, v_scale);
  if (call.outs[Out::kWeight].data)
    store(call, Out::kWeight, load(call.outs[Out::kW]));  // rounded from the master as stored
}

}  // namespace kintsugi::kernels::reference
