#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/finish_contract.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// The product, rounded as if stored, then its epilogue.
void store_activated(const KernelCall& call, const std::string& operation, const std::vector<double>& product) {
  const Activation& activation = activation_of(operation, call.attributes);
  const size_t at = call.outs[ContractOut::kX].data ? ContractOut::kX : ContractOut::kY;
  store(call, at, product);
  std::vector<double> y = load(call.outs[at]);
  if (const View& x_view = call.ins[ContractIn::kX]; x_view.data) {
    const std::vector<double> x = load(x_view);
    for (size_t i = 0; i < y.size(); ++i) y[i] *= activation.slope(x[i]);
  } else {
    for (double& element : y) element = activation.value(element);
  }
  store(call, ContractOut::kY, y);
}

}  // namespace

void finish_contract(const KernelCall& call, std::vector<double> y) {
  const View& bias_view = call.ins[ContractIn::kBias];
  const Shape& kept = call.outs[0].shape();
  if (bias_view.data) {
    const std::vector<double> bias = load(bias_view);
    const std::vector<int64_t> at = offsets(kept, bias_view.shape());
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[static_cast<size_t>(at[i])];
  }
  if (call.ins.size() > ContractIn::kAdded && call.ins[ContractIn::kAdded].data) {
    const std::vector<double> added = load(call.ins[ContractIn::kAdded]);
    for (size_t i = 0; i < y.size(); ++i) y[i] += added[i];
  }
  const std::string operation = call.attributes.text_or("epilogue", "");
  operation.empty() ? store(call, ContractOut::kY, y) : store_activated(call, operation, y);
}

// y: the kept dims; `summed`: those of a and b that y lacks.
void contract(const KernelCall& call) {
  const View& a_view = call.ins[ContractIn::kA];
  const Shape& kept = call.outs[0].shape();
  auto [b_shape, b] = load_columns(call, call.ins[ContractIn::kB], kept);
  if (call.ins.size() > ContractIn::kScale && call.ins[ContractIn::kScale].data)
    b = load_scaled(call.ins[ContractIn::kB], call.ins[ContractIn::kScale]);
  std::vector<tensor::Dim> lacking;
  for (const tensor::Dim& dim : a_view.shape()) {
    if (!kept.has(dim.name)) lacking.push_back(dim);
  }
  for (const tensor::Dim& dim : b_shape) {
    if (!kept.has(dim.name) && !a_view.shape().has(dim.name)) lacking.push_back(dim);
  }
  const Shape summed(lacking);

  const std::vector<double> a = load(a_view);
  const std::vector<int64_t> a_begin = offsets(kept, a_view.shape()), b_begin = offsets(kept, b_shape);
  const std::vector<int64_t> a_step = offsets(summed, a_view.shape()), b_step = offsets(summed, b_shape);
  std::vector<double> y(a_begin.size(), 0.0);
  for (size_t i = 0; i < y.size(); ++i) {
    const double *a_row = a.data() + a_begin[i], *b_row = b.data() + b_begin[i];
    for (size_t j = 0; j < a_step.size(); ++j) y[i] += a_row[a_step[j]] * b_row[b_step[j]];
  }
  finish_contract(call, std::move(y));
}

}  // namespace kintsugi::kernels::reference
