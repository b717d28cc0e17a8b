#include "tests/cudnn/standin.h"

#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tests/cudnn/standin_convolution.h"
#include "tests/cudnn/standin_graph.h"

namespace kintsugi::tests::cudnn {
namespace {

Standin& standin() {
  static Standin all;
  return all;
}

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

cudnnStatus_t broken(std::string rule) {
  standin().broken.push_back(std::move(rule));
  return CUDNN_STATUS_BAD_PARAM;
}

Descriptor& of(cudnnBackendDescriptor_t handle) {
  return *static_cast<Descriptor*>(handle);
}

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

// The element at `at`, where a dim of size 1 is broadcast, and one head is shared by several adjacent ones.
double read(const Values& x, const std::vector<int64_t>& at, const std::vector<int64_t>& sizes) {
  int64_t place = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const int64_t own = x.sizes[d] == sizes[d] ? at[d] : x.sizes[d] == 1 ? 0 : at[d] / (sizes[d] / x.sizes[d]);
    place = place * x.sizes[d] + own;
  }
  return x.at[static_cast<size_t>(place)];
}

Values multiply(const Values& a, const Values& b, const std::vector<int64_t>& sizes) {
  Values c = {sizes, std::vector<double>(static_cast<size_t>(elements(sizes)))};
  const int64_t k = a.sizes[3];
  std::vector<int64_t> of_a = sizes, of_b = sizes;
  of_a[3] = k, of_b[2] = k;
  each(sizes, [&](const std::vector<int64_t>& at, int64_t i) {
    double sum = 0;
    std::vector<int64_t> in_a = at, in_b = at;
    for (int64_t j = 0; j < k; ++j) {
      in_a[3] = in_b[2] = j;
      sum += read(a, in_a, of_a) * read(b, in_b, of_b);
    }
    c.at[static_cast<size_t>(i)] = sum;
  });
  return c;
}

double point(int mode, int axis, const std::vector<int64_t>& at, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_GEN_INDEX:
      return static_cast<double>(at[static_cast<size_t>(axis)]);
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      broken(fmt::format("an operation of mode {}", mode));
      return NAN;
  }
}

Values reduce(const Values& x, const std::vector<int64_t>& sizes, int operation) {
  const bool most = operation == CUDNN_REDUCE_TENSOR_MAX;
  if (!most && operation != CUDNN_REDUCE_TENSOR_ADD) broken(fmt::format("a reduction of kind {}", operation));
  Values y = {sizes, std::vector<double>(static_cast<size_t>(elements(sizes)), most ? -INFINITY : 0)};
  each(x.sizes, [&](const std::vector<int64_t>& at, int64_t i) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d)
      place = place * sizes[d] + (sizes[d] == x.sizes[d] ? at[d] : at[d] / (x.sizes[d] / sizes[d]));
    double& to = y.at[static_cast<size_t>(place)];
    const double value = x.at[static_cast<size_t>(i)];
    to = most ? std::max(to, value) : to + value;
  });
  return y;
}

// One call: the graph and the addresses of its tensors.
struct Work {
  std::shared_ptr<const std::vector<const Descriptor*>> operations;
  std::map<int64_t, void*> memory;
  std::map<int64_t, float> numbers;  // of the host
};

Values load(const Work& work, const Descriptor& tensor) {
  Values x = {sizes_of(tensor), {}};
  if (on_host(tensor)) {
    x.at.assign(static_cast<size_t>(elements(x.sizes)), work.numbers.at(name_of(tensor)));
    return x;
  }
  const auto strides = strides_of(tensor);
  const auto dtype = *dtype_of(type_of(tensor));
  const auto* data = static_cast<const std::byte*>(work.memory.at(name_of(tensor)));
  each(x.sizes, [&](const std::vector<int64_t>& at, int64_t) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
    x.at.push_back(load_number(data, dtype, place));
  });
  return x;
}

void store(const Work& work, const Descriptor& tensor, const Values& x) {
  const auto strides = strides_of(tensor);
  const auto dtype = *dtype_of(type_of(tensor));
  auto* data = static_cast<std::byte*>(work.memory.at(name_of(tensor)));
  each(x.sizes, [&](const std::vector<int64_t>& at, int64_t i) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
    store_number(data, dtype, place, x.at[static_cast<size_t>(i)]);
  });
}

// A strided view of the same memory.
Values reshape(const Values& x, const std::vector<int64_t>& from, const std::vector<int64_t>& sizes,
               const std::vector<int64_t>& to) {
  std::map<int64_t, double> memory;
  const auto place = [](const std::vector<int64_t>& at, const std::vector<int64_t>& strides) {
    int64_t sum = 0;
    for (size_t d = 0; d < at.size(); ++d) sum += at[d] * strides[d];
    return sum;
  };
  each(x.sizes,
       [&](const std::vector<int64_t>& at, int64_t i) { memory[place(at, from)] = x.at[static_cast<size_t>(i)]; });
  Values y = {sizes, {}};
  each(sizes, [&](const std::vector<int64_t>& at, int64_t) { y.at.push_back(memory.at(place(at, to))); });
  return y;
}

// Fused attention without a mask: o, and the log-sums.
std::pair<Values, Values> attend(const Values& q, const Values& k, const Values& v, double scale) {
  const std::vector<int64_t> of_scores = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
  Values turned = {{k.sizes[0], k.sizes[1], k.sizes[3], k.sizes[2]}, {}};
  each(turned.sizes, [&](const std::vector<int64_t>& at, int64_t) {
    turned.at.push_back(read(k, {at[0], at[1], at[3], at[2]}, k.sizes));
  });
  Values p = multiply(q, turned, of_scores), sums = {{q.sizes[0], q.sizes[1], q.sizes[2], 1}, {}};
  const auto keys = static_cast<size_t>(k.sizes[2]);
  for (size_t row = 0; row < p.at.size(); row += keys) {
    double sum = 0;
    for (size_t i = row; i < row + keys; ++i) sum += std::exp(scale * p.at[i]);
    for (size_t i = row; i < row + keys; ++i) p.at[i] = std::exp(scale * p.at[i]) / sum;
    sums.at.push_back(std::log(sum));
  }
  return {multiply(p, v, q.sizes), sums};
}

void compute(const Work& work) {
  std::map<int64_t, Values> known;
  for (const Descriptor* operation : *work.operations) {
    const Operands names = *operands_of(*operation);
    std::vector<const Values*> ins;
    for (const int name : names.ins) {
      const Descriptor* tensor = operation->part(name);
      if (tensor == nullptr) {
        ins.push_back(nullptr);
        continue;
      }
      auto found = known.find(name_of(*tensor));
      if (found == known.end()) found = known.emplace(name_of(*tensor), load(work, *tensor)).first;
      ins.push_back(&found->second);
    }
    const Descriptor& out = *operation->part(names.outs[0]);
    if (operation->kind == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) {
      const auto [o, sums] = attend(*ins[0], *ins[1], *ins[2], ins[3]->at[0]);
      store(work, out, o), store(work, *operation->part(names.outs[1]), sums);
      continue;
    }
    const std::vector<int64_t> sizes = sizes_of(out);
    Values made;
    if (convolution_of(*operation)) {
      made = convolve(*operation, *ins[0], *ins[1]);
    } else if (operation->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      made = multiply(*ins[0], *ins[1], sizes);
    } else if (operation->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      made = reduce(*ins[0], sizes,
                    operation->part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->value<int>(CUDNN_ATTR_REDUCTION_OPERATOR));
    } else if (operation->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      made = reshape(*ins[0], strides_of(*operation->part(names.ins[0])), sizes, strides_of(out));
    } else {
      const Descriptor& how = *operation->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      const int mode = how.value<int>(CUDNN_ATTR_POINTWISE_MODE);
      const auto axis = static_cast<int>(how.value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1));
      made = {sizes, std::vector<double>(static_cast<size_t>(elements(sizes)))};
      const auto value = [&](size_t i, const std::vector<int64_t>& at) {
        return i < ins.size() && ins[i] != nullptr ? read(*ins[i], at, sizes) : 0;
      };
      each(sizes, [&](const std::vector<int64_t>& at, int64_t i) {
        made.at[static_cast<size_t>(i)] = point(mode, axis, at, value(0, at), value(1, at), value(2, at));
      });
    }
    if (!is_virtual(out)) store(work, out, made);
    known[name_of(out)] = std::move(made);
  }
}

// Checks the rules of a graph; empty if it obeys them.
std::string broken_rule(const Descriptor& graph) {
  std::map<int64_t, bool> is_made;
  const auto& operations = graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (const Descriptor* operation : operations) {
    const auto names = operands_of(*operation);
    if (!names) return fmt::format("an operation of kind {}", static_cast<int>(operation->kind));
    if (!operation->finished) return "an operation that is not finished";
    if (const auto convolution = convolution_of(*operation)) {
      if (std::string rule = broken_convolution_rule(*convolution); !rule.empty()) return rule;
      continue;
    }
    std::vector<int> all = names->ins;
    all.insert(all.end(), names->outs.begin(), names->outs.end());
    for (const int name : all) {
      const Descriptor* tensor = operation->part(name);
      if (tensor == nullptr || on_host(*tensor)) continue;
      const auto sizes = sizes_of(*tensor), strides = strides_of(*tensor);
      if (sizes.size() != 4 || strides.size() != 4) return "a tensor without four dims";
      if (std::find(names->outs.begin(), names->outs.end(), name) != names->outs.end()) {
        if (is_made[name_of(*tensor)]) return fmt::format("tensor {} is made twice", name_of(*tensor));
        is_made[name_of(*tensor)] = true;
      } else if (is_virtual(*tensor) && !is_made[name_of(*tensor)]) {
        return fmt::format("tensor {} is read and not made", name_of(*tensor));
      }
      if (is_virtual(*tensor)) continue;
      if (!dtype_of(type_of(*tensor))) return fmt::format("a tensor of type {}", type_of(*tensor));
      if (type_of(*tensor) != CUDNN_DATA_FLOAT && std::min(strides[2], strides[3]) != 1)
        return fmt::format("elements of a head are {} and {} apart", strides[2], strides[3]);
    }
  }
  return "";
}

// Workspace bytes of a graph: with a deterministic gradient of q, all scores are kept in 16 bits.
int64_t needs(const Descriptor& graph) {
  int64_t products = 0, most = 0;
  for (const Descriptor* operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    // fp32 sums of weights, of which there are several.
    if (operation->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
      return standin().needs + 8 * elements(sizes_of(*operation->part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)));
    if (operation->kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    ++products;
    most = std::max(most, elements(sizes_of(*operation->part(CUDNN_ATTR_OPERATION_MATMUL_CDESC))));
  }
  return standin().needs + (products > 2 ? 2 * most : 256);
}

const Descriptor& graph_of(const Descriptor& plan) {
  const Descriptor* config = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  return *config->part(CUDNN_ATTR_ENGINECFG_ENGINE)->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

// Represents a handle.
struct Handle {
  cudaStream_t stream = nullptr;
};

cudnnStatus_t execute(Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  const Descriptor& graph = graph_of(plan);
  const auto names = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto data = pack.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (names.size() != data.size()) return broken("a pack with other names than places");
  const auto place_of = [&](int64_t name) -> void* {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? nullptr : data[static_cast<size_t>(found - names.begin())];
  };
  auto work = std::make_unique<Work>();
  work->operations =
      std::make_shared<const std::vector<const Descriptor*>>(graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS));
  Call call;
  call.stream = handle.stream, call.workspace = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (needs(graph) > 0 && call.workspace == nullptr) return broken("no memory to work in");
  std::map<int64_t, Tensor> tensors;
  for (const Descriptor* operation : *work->operations) {
    call.products += operation->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    call.products += 2 * (operation->kind == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    call.convolutions += convolution_of(*operation).has_value();
    Operands operands = *operands_of(*operation);
    operands.ins.insert(operands.ins.end(), operands.outs.begin(), operands.outs.end());
    for (const int name : operands.ins) {
      const Descriptor* tensor = operation->part(name);
      if (tensor == nullptr || is_virtual(*tensor)) continue;
      void* const at = place_of(name_of(*tensor));
      if (at == nullptr) return broken(fmt::format("no place of tensor {}", name_of(*tensor)));
      if (on_host(*tensor)) {
        float value = 0;
        std::memcpy(&value, at, sizeof value);
        work->numbers[name_of(*tensor)] = value;
        continue;
      }
      if (reinterpret_cast<uintptr_t>(at) % 16 != 0) return broken("a tensor that does not begin at 16 bytes");
      work->memory[name_of(*tensor)] = at;
      tensors[name_of(*tensor)] = {name_of(*tensor), sizes_of(*tensor), strides_of(*tensor), type_of(*tensor), at};
    }
  }
  for (auto& [name, tensor] : tensors) call.tensors.push_back(std::move(tensor));
  standin().calls.push_back(std::move(call));
  // Kept until the end: a captured step is replayed.
  standin().enqueue(
      handle.stream, [](void* context) { compute(*static_cast<const Work*>(context)); }, work.release());
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace kintsugi::tests::cudnn

using kintsugi::tests::cudnn::Descriptor;
using kintsugi::tests::cudnn::Handle;
using kintsugi::tests::cudnn::mutex;
using kintsugi::tests::cudnn::of;
using kintsugi::tests::cudnn::standin;

kintsugi::tests::cudnn::Standin* kintsugi_cudnn_standin() {
  return &standin();
}
size_t cudnnGetVersion() {
  return 91900;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "the stand-in does not know this";
}
void cudnnGetLastErrorString(char* text, size_t most) {
  if (most > 0) *text = 0;
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = reinterpret_cast<Handle*>(handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}
// Descriptors are kept until the end: enqueued work reads them.
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t* made) {
  *made = new Descriptor{.kind = kind, .set = {}, .parts = {}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Descriptor& d = of(descriptor);
  if (d.finished) return kintsugi::tests::cudnn::broken("a descriptor is changed when it is finished");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* parts = static_cast<Descriptor* const*>(values);
    d.parts[name].assign(parts, parts + count);
  } else {
    const auto* bytes = static_cast<const std::byte*>(values);
    d.set[name].assign(bytes, bytes + static_cast<size_t>(count) * kintsugi::tests::cudnn::size_of(type));
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard lock(mutex());
  Descriptor& d = of(descriptor);
  d.finished = true;
  if (d.kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    if (standin().refuses) return CUDNN_STATUS_NOT_SUPPORTED;
    if (standin().narrow_weights && kintsugi::tests::cudnn::widens_weights(d)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (std::string rule = kintsugi::tests::cudnn::broken_rule(d); !rule.empty())
      return kintsugi::tests::cudnn::broken(std::move(rule));
  }
  standin().plans += d.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  return CUDNN_STATUS_SUCCESS;
}
// One engine per graph. Unknown numeric attributes are 0; lists are empty.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  Descriptor& d = of(descriptor);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = 1;
    if (most == 0) return CUDNN_STATUS_SUCCESS;
    auto* const engine = new Descriptor{.kind = CUDNN_BACKEND_ENGINE_DESCRIPTOR, .set = {}, .parts = {}};
    engine->parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = d.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    Descriptor& config = *static_cast<Descriptor* const*>(values)[0];
    config.parts[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine};
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    Descriptor& to = *static_cast<Descriptor* const*>(values)[0];
    to.parts = d.part(name)->parts;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    const std::vector<int>& notes = standin().notes;
    *count = static_cast<int64_t>(notes.size());
    if (values != nullptr) std::memcpy(values, notes.data(), std::min<size_t>(notes.size(), most) * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
  }
  const bool number = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_INT32 || type == CUDNN_TYPE_BOOLEAN;
  if (count != nullptr) *count = number && most > 0 ? 1 : 0;
  if (!number || most == 0 || values == nullptr) return CUDNN_STATUS_SUCCESS;
  std::memset(values, 0, kintsugi::tests::cudnn::size_of(type));
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) {
    const Descriptor& graph = name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE
                                  ? kintsugi::tests::cudnn::graph_of(d)
                                  : *d.part(CUDNN_ATTR_ENGINECFG_ENGINE)->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    const int64_t needs = kintsugi::tests::cudnn::needs(graph);
    std::memcpy(values, &needs, sizeof needs);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const std::lock_guard lock(mutex());
  return kintsugi::tests::cudnn::execute(*reinterpret_cast<Handle*>(handle), of(plan), of(pack));
}
