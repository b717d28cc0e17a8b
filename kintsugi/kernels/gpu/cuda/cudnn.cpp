// Attention by NVIDIA cuDNN, loaded on first use; optional. The library's header-only frontend builds the graph for
// attention. It calls the library by name; the functions are defined here and forward to the loaded library.
#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>
#include <nvrtc.h>

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/shared_library.h"
#include "kintsugi/device/device.h"
#include "kintsugi/kernels/gpu/attention_library.h"

namespace {

// The functions of the library that are used.
struct Library {
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error_string = nullptr;
  decltype(&cudnnGetStream) get_stream = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
};

// Null if the library is missing, or older than the oldest version tested.
const Library* library() {
  static const std::unique_ptr<Library> found = []() -> std::unique_ptr<Library> {
    // "own": use our own kernels.
    if (kintsugi::base::environment_word("device", "KINTSUGI_ATTENTION", {"own"}) == "own") return nullptr;
    constexpr size_t kOldest = 91900;
    const char* const names[] = {"libcudnn.so.9"};
    kintsugi::base::VendorLibrary opened(names);
    if (!opened) return nullptr;
    auto l = std::make_unique<Library>();
    opened.find("cudnnBackendCreateDescriptor", l->create_descriptor);
    opened.find("cudnnBackendDestroyDescriptor", l->destroy_descriptor);
    opened.find("cudnnBackendExecute", l->execute);
    opened.find("cudnnBackendFinalize", l->finalize);
    opened.find("cudnnBackendGetAttribute", l->get_attribute);
    opened.find("cudnnBackendSetAttribute", l->set_attribute);
    opened.find("cudnnCreate", l->create);
    opened.find("cudnnGetErrorString", l->error_string);
    opened.find("cudnnGetLastErrorString", l->last_error_string);
    opened.find("cudnnGetStream", l->get_stream);
    opened.find("cudnnGetVersion", l->version);
    opened.find("cudnnSetStream", l->set_stream);
    return opened.found_all() && l->version() >= kOldest ? std::move(l) : nullptr;
  }();
  return found.get();
}

}  // namespace

// Functions called by the frontend.
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  return library()->create_descriptor(type, made);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return library()->destroy_descriptor(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return library()->finalize(descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return library()->set_attribute(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  return library()->get_attribute(descriptor, name, type, most, count, values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return library()->execute(handle, plan, pack);
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return library()->error_string(status);
}
void cudnnGetLastErrorString(char* text, size_t most) {
  library()->last_error_string(text, most);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return library()->get_stream(handle, stream);
}
size_t cudnnGetVersion() {
  return library()->version();
}

// The frontend compiles norms at run time; they are not used here.
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}

namespace kintsugi::kernels {
namespace {

namespace fe = cudnn_frontend;

// The fixed parameters of a call; calls that differ only in addresses share a graph.
struct Key {
  int device;
  int64_t batch, heads, kv_heads, seq, head_dim;
  tensor::DType dtype;
  bool causal, gradient;
  float scale;
  AttentionStrides q, k, v, o, lse, d_o, dq, dk, dv;
  int64_t workspace;

  auto operator<=>(const Key&) const = default;
};

// Ids of the tensors of a graph.
enum Name : int64_t { kQ = 1, kK, kV, kO, kLse, kDo, kDq, kDk, kDv };

using Graph = fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

std::vector<int64_t> dims(const Key& key, Name name) {
  const bool of_keys = name == kK || name == kV || name == kDk || name == kDv;
  return {key.batch, of_keys ? key.kv_heads : key.heads, key.seq, name == kLse ? 1 : key.head_dim};
}
std::vector<int64_t> strides(const AttentionStrides& at) {
  return {at.batch, at.head, at.place, 1};
}

// The graph with its execution plan; null if the library has none that fits the workspace.
std::unique_ptr<Graph> graph_of(const Key& key, cudnnHandle_t handle) {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(key.dtype == tensor::DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto in = [&](Name name, const AttentionStrides& at) {
    auto made = fe::graph::Tensor_attributes();
    made.set_name(std::to_string(name)).set_uid(name).set_dim(dims(key, name)).set_stride(strides(at));
    if (name == kLse) made.set_data_type(fe::DataType_t::FLOAT);
    return graph->tensor(made);
  };
  const auto out = [&](const Tensor& made, Name name, const AttentionStrides& at) {
    made->set_output(true).set_uid(name).set_dim(dims(key, name)).set_stride(strides(at));
    if (name == kLse) made->set_data_type(fe::DataType_t::FLOAT);
  };
  const Tensor q = in(kQ, key.q), k = in(kK, key.k), v = in(kV, key.v);
  if (key.gradient) {
    const auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, in(kO, key.o), in(kDo, key.d_o), in(kLse, key.lse),
                                                   fe::graph::SDPA_backward_attributes()
                                                       .set_name("attention_grad")
                                                       .set_attn_scale(key.scale)
                                                       .set_causal_mask(key.causal)
                                                       .set_deterministic_algorithm(true));
    out(dq, kDq, key.dq), out(dk, kDk, key.dk), out(dv, kDv, key.dv);
  } else {
    const auto [o, lse] = graph->sdpa(q, k, v,
                                      fe::graph::SDPA_attributes()
                                          .set_name("attention")
                                          .set_generate_stats(true)
                                          .set_attn_scale(key.scale)
                                          .set_causal_mask(key.causal));
    out(o, kO, key.o), out(lse, kLse, key.lse);
  }
  int64_t needs = 0;
  const bool good = graph->build(handle, {fe::HeurMode_t::A}).is_good() && graph->get_workspace_size(needs).is_good();
  return good && needs <= key.workspace ? std::move(graph) : nullptr;
}

// Library handles by device number, and graphs. Used by one thread at a time.
struct Plans {
  std::mutex mutex;
  std::map<int, cudnnHandle_t> handles;
  std::map<Key, std::unique_ptr<Graph>> graphs;
};

Plans& plans() {
  static auto* all = new Plans();  // never destroyed: threads may outlive static values
  return *all;
}

}  // namespace

bool cudnn_attention(const LibraryAttention& a, device::Stream& stream) {
  const Library* l = library();
  if (l == nullptr) return false;
  Key key = {.device = 0,
             .batch = a.batch,
             .heads = a.heads,
             .kv_heads = a.kv_heads,
             .seq = a.seq,
             .head_dim = a.head_dim,
             .dtype = a.dtype,
             .causal = a.causal,
             .gradient = a.gradient,
             .scale = a.scale,
             .q = a.q.at,
             .k = a.k.at,
             .v = a.v.at,
             .o = a.o.at,
             .lse = a.lse.at,
             .d_o = a.d_o.at,
             .dq = a.dq.at,
             .dk = a.dk.at,
             .dv = a.dv.at,
             .workspace = a.workspace_bytes};
  if (cudaGetDevice(&key.device) != cudaSuccess) return false;
  Plans& all = plans();
  const std::lock_guard lock(all.mutex);
  cudnnHandle_t& handle = all.handles[key.device];
  if (handle == nullptr && l->create(&handle) != CUDNN_STATUS_SUCCESS) {
    handle = nullptr;
    return false;
  }
  auto found = all.graphs.find(key);
  if (found == all.graphs.end()) found = all.graphs.emplace(key, graph_of(key, handle)).first;
  const std::unique_ptr<Graph>& graph = found->second;
  if (graph == nullptr || !stream.enqueues()) return graph != nullptr;
  std::unordered_map<int64_t, void*> memory;
  const auto place = [&](Name name, const AttentionOperand& x) { memory[name] = const_cast<void*>(x.data); };
  place(kQ, a.q), place(kK, a.k), place(kV, a.v), place(kO, a.o), place(kLse, a.lse);
  if (a.gradient) place(kDo, a.d_o), place(kDq, a.dq), place(kDk, a.dk), place(kDv, a.dv);
  const cudnnStatus_t status = l->set_stream(handle, static_cast<cudaStream_t>(stream.native()));
  base::require(status == CUDNN_STATUS_SUCCESS, "attention", "cuDNN: a stream: status {}", static_cast<int>(status));
  auto done = graph->execute(handle, memory, a.workspace);
  base::require(done.is_good(), "attention", "cuDNN: {}", done.get_message());
  return true;
}

}  // namespace kintsugi::kernels
