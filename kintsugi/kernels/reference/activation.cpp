#include "kintsugi/kernels/reference/activation.h"

#include <cmath>
#include <numbers>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Hendrycks, Gimpel 2016, "Gaussian error linear units", section 2.
double gelu_value(double x) {
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}

double gelu_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

// The tanh approximation of the same paper: 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
const double kRoot = std::sqrt(2 / std::numbers::pi);

double gelu_tanh_value(double x) {
  return 0.5 * x * (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x)));
}

double gelu_tanh_slope(double x) {
  const double t = std::tanh(kRoot * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRoot * (1 + 3 * 0.044715 * x * x);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double silu_value(double x) {
  return x * sigmoid(x);
}
double silu_slope(double x) {
  return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
}

double relu_value(double x) {
  return x > 0 ? x : 0;
}
double relu_slope(double x) {
  return x > 0 ? 1 : 0;
}

// So et al. 2021, "Primer", section 4.
double relu2_value(double x) {
  return x > 0 ? x * x : 0;
}
double relu2_slope(double x) {
  return x > 0 ? 2 * x : 0;
}

double tanh_value(double x) {
  return std::tanh(x);
}
double tanh_slope(double x) {
  return 1 - std::tanh(x) * std::tanh(x);
}

constexpr Activation kActivations[] = {
    {"gelu", gelu_value, gelu_slope},    {"gelu_tanh", gelu_tanh_value, gelu_tanh_slope},
    {"silu", silu_value, silu_slope},    {"relu", relu_value, relu_slope},
    {"relu2", relu2_value, relu2_slope}, {"tanh", tanh_value, tanh_slope},
};

}  // namespace

const Activation& activation(std::string_view name) {
  for (const Activation& a : kActivations) {
    if (a.name == name) return a;
  }
  throw base::InternalError("kernels", "no activation \"{}\"; there are gelu, gelu_tanh, silu, relu, relu2, tanh",
                            name);
}

const Activation& activation_of(std::string_view operation, const tensor::Attributes& attributes) {
  if (operation.ends_with("_grad")) operation.remove_suffix(5);
  if (operation != "gelu") return activation(operation);
  const std::string& form = attributes.text("form");
  base::require(form == "tanh" || form == "erf", "gelu", "no form \"{}\"; there are tanh, erf", form);
  return activation(form == "tanh" ? "gelu_tanh" : "gelu");
}

void apply(const Activation& activation, const KernelCall& call) {
  std::vector<double> y = load(call.ins[0]);
  for (double& element : y) element = activation.value(element);
  store(call, 0, y);
}

void apply_grad(const Activation& activation, const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> dx = load(call.ins[1]);
  for (size_t i = 0; i < x.size(); ++i) dx[i] *= activation.slope(x[i]);
  store(call, 0, dx);
}

}  // namespace kintsugi::kernels::reference
