// Attention by NVIDIA cuDNN, whose frontend builds the graph for attention.
#include <map>
#include <memory>
#include <unordered_map>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/error.h"
#include "kintsugi/device/device.h"
#include "kintsugi/kernels/gpu/attention_library.h"
#include "kintsugi/kernels/gpu/cuda/cudnn_library.h"

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

// Graphs by key. Used by one thread at a time, which has the library's handle.
std::map<Key, std::unique_ptr<Graph>>& graphs() {
  static auto* all = new std::map<Key, std::unique_ptr<Graph>>();  // never destroyed: threads may outlive static values
  return *all;
}

}  // namespace

bool cudnn_attention(const LibraryAttention& a, device::Stream& stream) {
  static const bool own = base::environment_word("device", "KINTSUGI_ATTENTION", {"own"}) == "own";
  const Cudnn* l = own ? nullptr : cudnn();
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
  const CudnnHandle handle(*l);
  if (handle.get() == nullptr) return false;
  key.device = handle.device();
  auto found = graphs().find(key);
  if (found == graphs().end()) found = graphs().emplace(key, graph_of(key, handle.get())).first;
  const std::unique_ptr<Graph>& graph = found->second;
  if (graph == nullptr || !stream.enqueues()) return graph != nullptr;
  std::unordered_map<int64_t, void*> memory;
  const auto place = [&](Name name, const AttentionOperand& x) { memory[name] = const_cast<void*>(x.data); };
  place(kQ, a.q), place(kK, a.k), place(kV, a.v), place(kO, a.o), place(kLse, a.lse);
  if (a.gradient) place(kDo, a.d_o), place(kDq, a.dq), place(kDk, a.dk), place(kDv, a.dv);
  const cudnnStatus_t status = l->set_stream(handle.get(), static_cast<cudaStream_t>(stream.native()));
  base::require(status == CUDNN_STATUS_SUCCESS, "attention", "cuDNN: a stream: status {}", static_cast<int>(status));
  auto done = graph->execute(handle.get(), memory, a.workspace);
  base::require(done.is_good(), "attention", "cuDNN: {}", done.get_message());
  return true;
}

}  // namespace kintsugi::kernels
