#include "kintsugi/train/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/format.h"
#include "kintsugi/kernels/host/bandwidth.h"
#include "kintsugi/kernels/host/peak.h"

namespace kintsugi::train {

bool is_product(std::string_view kernel) {
  constexpr std::array<std::string_view, 7> kProducts = {"contract", "grouped",   "attention",     "attention_grad",
                                                         "head",     "head_grad", "head_with_grad"};
  return std::ranges::count(kProducts, kernel) > 0;
}

double Limits::flops_of(std::string_view kernel) const {
  return is_product(kernel) ? product_flops : flops;
}

Limits measure_limits(base::ThreadTeam& team, tensor::DType dtype, int64_t copied, const std::function<void()>& meet) {
  meet();
  Limits limits = {.flops = kernels::host::measure_peak_flops(team, tensor::DType::f32)};
  limits.product_flops = limits.flops;
  if (dtype == tensor::DType::bf16) {
    meet();
    limits.product_flops = kernels::host::measure_peak_flops(team, dtype);
  }
  meet();
  limits.bytes = kernels::host::measure_memory_bandwidth(team, copied);
  return limits;
}

std::string print(const Limits& limits, tensor::DType dtype) {
  std::string text = base::format_rate(limits.flops, "FLOP/s") + " (fp32), ";
  if (dtype == tensor::DType::bf16)
    text += fmt::format("{} (products in bf16), ", base::format_rate(limits.product_flops, "FLOP/s"));
  return text + base::format_rate(limits.bytes, "B/s") + " of memory";
}

}  // namespace kintsugi::train
