// Convolutions by NVIDIA cuDNN.
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/error.h"
#include "kintsugi/kernels/gpu/convolution_library.h"
#include "kintsugi/kernels/gpu/cuda/cudnn_library.h"

namespace kintsugi::kernels {
namespace {

using ConvolutionGraph = cudnn_frontend::graph::Graph;
using ConvolutionTensor = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;

// The fixed parameters of a call; calls that differ only in addresses share a graph.
struct ConvolutionKey {
  int device;
  ConvolutionPass pass;
  int axes;
  int64_t samples, channels, filters, groups;
  LibraryAxis axis[3];
  tensor::DType dtype, dw_dtype;
  bool tf32;
  int64_t workspace;

  auto operator<=>(const ConvolutionKey&) const = default;
};

// Ids of the tensors of a graph.
enum ConvolutionName : int64_t { kX = 1, kW, kY };

cudnn_frontend::DataType_t type_of(tensor::DType dtype) {
  return dtype == tensor::DType::f32    ? cudnn_frontend::DataType_t::FLOAT
         : dtype == tensor::DType::bf16 ? cudnn_frontend::DataType_t::BFLOAT16
                                        : cudnn_frontend::DataType_t::HALF;
}

// Sizes in the library's order, with channels before spatial dims, and strides with channels last.
struct ConvolutionLayout {
  std::vector<int64_t> dims, strides;
};
ConvolutionLayout layout(const ConvolutionKey& key, ConvolutionName name) {
  ConvolutionLayout l;
  l.dims = name == kW ? std::vector<int64_t>{key.filters, key.channels / key.groups}
                      : std::vector<int64_t>{key.samples, name == kX ? key.channels : key.filters};
  for (int i = 3 - key.axes; i < 3; ++i)
    l.dims.push_back(name == kX ? key.axis[i].in : name == kW ? key.axis[i].kernel : key.axis[i].out);
  l.strides.resize(l.dims.size());
  int64_t stride = l.dims[1];
  l.strides[1] = 1;
  for (size_t d = l.dims.size(); d-- > 2;) l.strides[d] = stride, stride *= l.dims[d];
  l.strides[0] = stride;
  return l;
}

template <typename Attributes>
Attributes windows(const ConvolutionKey& key) {
  std::vector<int64_t> low, high, stride, dilation;
  for (int i = 3 - key.axes; i < 3; ++i) {
    low.push_back(key.axis[i].low), high.push_back(key.axis[i].high);
    stride.push_back(key.axis[i].stride), dilation.push_back(key.axis[i].dilation);
  }
  return Attributes().set_pre_padding(low).set_post_padding(high).set_stride(stride).set_dilation(dilation);
}

// Deterministic algorithms that keep fp32 sums and, without TF32, fp32 products.
std::vector<cudnn_frontend::NumericalNote_t> refused(const ConvolutionKey& key) {
  using Note = cudnn_frontend::NumericalNote_t;
  std::vector<Note> notes = {Note::NONDETERMINISTIC, Note::REDUCED_PRECISION_REDUCTION};
  if (key.dtype != tensor::DType::f32 || !key.tf32) notes.push_back(Note::DOWN_CONVERT_INPUTS);
  if (key.dtype == tensor::DType::f32 && !key.tf32) notes.push_back(Note::TENSOR_CORE);
  return notes;
}

// The graph with its execution plan; null if the library has none that fits the workspace.
std::unique_ptr<ConvolutionGraph> convolution_graph(const ConvolutionKey& key, cudnnHandle_t handle) {
  auto graph = std::make_unique<ConvolutionGraph>();
  graph->set_io_data_type(type_of(key.dtype))
      .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
      .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
  const auto in = [&](ConvolutionName name) {
    const ConvolutionLayout l = layout(key, name);
    auto made = cudnn_frontend::graph::Tensor_attributes();
    made.set_name(std::to_string(name)).set_uid(name).set_dim(l.dims).set_stride(l.strides);
    return graph->tensor(made);
  };
  const auto out = [&](const ConvolutionTensor& made, ConvolutionName name) {
    const ConvolutionLayout l = layout(key, name);
    made->set_output(true).set_uid(name).set_dim(l.dims).set_stride(l.strides);
    if (name == kW) made->set_data_type(type_of(key.dw_dtype));
  };
  using namespace cudnn_frontend::graph;
  switch (key.pass) {
    case ConvolutionPass::forward: {
      const ConvolutionTensor x = in(kX), w = in(kW);
      out(graph->conv_fprop(x, w, windows<Conv_fprop_attributes>(key).set_name("convolution")), kY);
      break;
    }
    case ConvolutionPass::input: {
      const ConvolutionTensor dy = in(kY), w = in(kW);
      out(graph->conv_dgrad(dy, w, windows<Conv_dgrad_attributes>(key).set_name("convolution_grad_input")), kX);
      break;
    }
    case ConvolutionPass::weight: {
      const ConvolutionTensor dy = in(kY), x = in(kX);
      out(graph->conv_wgrad(dy, x, windows<Conv_wgrad_attributes>(key).set_name("convolution_grad_weight")), kW);
      break;
    }
  }
  using Mode = cudnn_frontend::HeurMode_t;
  if (!graph->validate().is_good() || !graph->build_operation_graph(handle).is_good() ||
      !graph->create_execution_plans({Mode::A, Mode::FALLBACK}).is_good())
    return nullptr;
  graph->deselect_numeric_notes(refused(key)).deselect_workspace_greater_than(key.workspace);
  int64_t needs = 0;
  const bool good = graph->check_support(handle).is_good() && graph->build_plans(handle).is_good() &&
                    graph->get_workspace_size(needs).is_good();
  return good && needs <= key.workspace ? std::move(graph) : nullptr;
}

// Graphs by key. Used by one thread at a time, which has the library's handle.
std::map<ConvolutionKey, std::unique_ptr<ConvolutionGraph>>& convolution_graphs() {
  static auto* all = new std::map<ConvolutionKey, std::unique_ptr<ConvolutionGraph>>();  // never destroyed
  return *all;
}

}  // namespace

bool cudnn_convolution(const LibraryConvolution& c, device::Stream& stream) {
  static const bool own = base::environment_word("device", "KINTSUGI_CONVOLUTION", {"own"}) == "own";
  const Cudnn* l = own ? nullptr : cudnn();
  if (l == nullptr) return false;
  const CudnnHandle handle(*l);
  if (handle.get() == nullptr) return false;
  ConvolutionKey key = {.device = handle.device(),
                        .pass = c.pass,
                        .axes = c.axes,
                        .samples = c.samples,
                        .channels = c.channels,
                        .filters = c.filters,
                        .groups = c.groups,
                        .axis = {c.axis[0], c.axis[1], c.axis[2]},
                        .dtype = c.dtype,
                        .dw_dtype = c.pass == ConvolutionPass::weight ? c.dw_dtype : c.dtype,
                        .tf32 = c.tf32,
                        .workspace = c.workspace_bytes};
  auto found = convolution_graphs().find(key);
  if (found == convolution_graphs().end())
    found = convolution_graphs().emplace(key, convolution_graph(key, handle.get())).first;
  const std::unique_ptr<ConvolutionGraph>& graph = found->second;
  if (graph == nullptr || !stream.enqueues()) return graph != nullptr;
  std::unordered_map<int64_t, void*> memory = {
      {kX, const_cast<void*>(c.x)}, {kW, const_cast<void*>(c.w)}, {kY, const_cast<void*>(c.y)}};
  const cudnnStatus_t status = l->set_stream(handle.get(), static_cast<cudaStream_t>(stream.native()));
  base::require(status == CUDNN_STATUS_SUCCESS, "convolution", "cuDNN: a stream: status {}", static_cast<int>(status));
  auto done = graph->execute(handle.get(), memory, c.workspace);
  base::require(done.is_good(), "convolution", "cuDNN: {}", done.get_message());
  return true;
}

}  // namespace kintsugi::kernels
