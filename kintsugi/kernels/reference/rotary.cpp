#include <cmath>

#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/rotary_frequencies.h"

namespace kintsugi::kernels::reference {

void rotary(const KernelCall& call) {
  std::vector<double> x = load(call.ins[0]);  // [batch seq ... head_dim]
  const Shape& shape = call.ins[0].shape();
  const int64_t head_dim = shape.size("head_dim"), seq = shape.size("seq");
  const RotaryFrequencies frequencies(call.attributes, head_dim);
  const int64_t half = frequencies.dims() / 2;
  const double direction = call.attributes.integer("inverse") != 0 ? -1 : 1;
  const bool interleaved = call.attributes.integer("interleaved") != 0;
  const std::vector<int64_t> place = global_of_local(call.index("seq"));
  for (int64_t row = 0; row < rows(shape); ++row) {
    double* pair = x.data() + row * head_dim;
    const int64_t s = row * head_dim / stride(shape, "seq") % seq;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = direction * static_cast<double>(place[static_cast<size_t>(s)]) * frequencies[i];
      const double cosine = frequencies.magnitude() * std::cos(angle), sine = frequencies.magnitude() * std::sin(angle);
      double &first = pair[interleaved ? 2 * i : i], &second = pair[interleaved ? 2 * i + 1 : i + half];
      const double turned = first * cosine - second * sine;
      second = first * sine + second * cosine;
      first = turned;
    }
  }
  store(call, 0, x);
}

}  // namespace kintsugi::kernels::reference
