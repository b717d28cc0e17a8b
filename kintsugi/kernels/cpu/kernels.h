// The CPU kernels: every function in the list of kernels.cpp, and the format of that list.
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::cpu {

// The types of operands by position, of a call (views) or known in advance (types).
class Types {
 public:
  explicit Types(std::span<const tensor::View> views) : views_(views.data()), size_(views.size()) {}
  explicit Types(std::span<const tensor::Type* const> types) : types_(types.data()), size_(types.size()) {}

  size_t size() const { return size_; }  // including absent ones
  bool has(size_t i) const { return types_ ? types_[i] != nullptr : views_[i].data != nullptr; }
  const tensor::Type& operator[](size_t i) const { return types_ ? *types_[i] : views_[i].type; }

 private:
  const tensor::View* views_ = nullptr;
  const tensor::Type* const* types_ = nullptr;
  size_t size_ = 0;
};

struct Operands {
  Types ins, outs;
  const tensor::Attributes& attributes;
};

// An entry of the list. If `takes` returns false (fp64, unusual dims), the reference kernel of that kind is used; it
// also defines the names of operands and outputs, and the abilities. A null `run` always selects the reference.
struct CpuKernel {
  std::string_view kind;
  void (*run)(const KernelCall&) = nullptr;
  bool (*takes)(const Operands&) = nullptr;
  int64_t (*workspace)(const KernelShapes&) = nullptr;
};

// Partitions a workspace into arrays aligned to 64 bytes. Without memory it only measures.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::span<std::byte> memory) : memory_(memory.data()), size_(static_cast<int64_t>(memory.size())) {}

  template <typename T>
  T* take(int64_t count) {
    T* here = reinterpret_cast<T*>(memory_ + used_);
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    if (memory_) base::require(used_ <= size_, "kernel", "a workspace of {} bytes is too small", size_);
    return memory_ ? here : nullptr;
  }
  int64_t bytes() const { return used_; }

 private:
  std::byte* memory_ = nullptr;
  int64_t size_ = 0, used_ = 0;
};

// fp32, bf16 or fp16.
bool is_fast(tensor::DType dtype);
bool nothing_is_fast(const Operands& o);  // always use the reference
bool first_is_fast(const Operands& o);    // the first input
bool second_is_fast(const Operands& o);   // the second input
bool one_number(const Operands& o);       // all are fp64, and the first output is a scalar of the run

void fill(const KernelCall& call);
bool fill_takes(const Operands& o);
void broadcast(const KernelCall& call);
bool broadcast_takes(const Operands& o);
void add(const KernelCall& call);
bool add_takes(const Operands& o);
void scale(const KernelCall& call);
void sum(const KernelCall& call);
bool sum_takes(const Operands& o);
int64_t sum_workspace(const KernelShapes& shapes);
void cast(const KernelCall& call);
bool cast_takes(const Operands& o);
void accumulate(const KernelCall& call);
bool accumulate_takes(const Operands& o);

void contract(const KernelCall& call);
bool contract_takes(const Operands& o);
int64_t contract_workspace(const KernelShapes& shapes);
void contract_fp64(const KernelCall& call);
bool contract_fp64_takes(const Operands& o);

void embedding(const KernelCall& call);
void embedding_grad(const KernelCall& call);
void position(const KernelCall& call);
void position_grad(const KernelCall& call);

void layer_norm(const KernelCall& call);
void layer_norm_grad(const KernelCall& call);
int64_t norm_grad_workspace(const KernelShapes& shapes);
void rms_norm(const KernelCall& call);
void rms_norm_grad(const KernelCall& call);

void gelu(const KernelCall& call);
void gelu_grad(const KernelCall& call);
void silu(const KernelCall& call);
void silu_grad(const KernelCall& call);
void relu(const KernelCall& call);
void relu_grad(const KernelCall& call);
void relu2(const KernelCall& call);
void relu2_grad(const KernelCall& call);
void tanh(const KernelCall& call);
void tanh_grad(const KernelCall& call);
void gated(const KernelCall& call);
void gated_grad(const KernelCall& call);
bool gated_takes(const Operands& o);
bool gated_grad_takes(const Operands& o);
void rotary(const KernelCall& call);
int64_t rotary_workspace(const KernelShapes& shapes);

void attention(const KernelCall& call);
int64_t attention_workspace(const KernelShapes& shapes);
void attention_grad(const KernelCall& call);
int64_t attention_grad_workspace(const KernelShapes& shapes);
void attention_join(const KernelCall& call);
bool attention_join_takes(const Operands& o);
void dropout(const KernelCall& call);

void head(const KernelCall& call);
int64_t head_workspace(const KernelShapes& shapes);
void head_grad(const KernelCall& call);
int64_t head_grad_workspace(const KernelShapes& shapes);
void head_with_grad(const KernelCall& call);
int64_t head_with_grad_workspace(const KernelShapes& shapes);
void cross_entropy(const KernelCall& call);
bool cross_entropy_takes(const Operands& o);
void cross_entropy_grad(const KernelCall& call);
void sample_scores(const KernelCall& call);
bool sample_scores_takes(const Operands& o);
void class_loss(const KernelCall& call);
void class_loss_grad(const KernelCall& call);
void squared_error(const KernelCall& call);
void squared_error_grad(const KernelCall& call);
void field_errors(const KernelCall& call);
void field_errors_grad(const KernelCall& call);
bool field_errors_take(const Operands& o);
bool field_errors_grad_takes(const Operands& o);
void first(const KernelCall& call);
void first_grad(const KernelCall& call);
bool cross_entropy_grad_takes(const Operands& o);
bool sample_loss_takes(const Operands& operands);

void sum_squares(const KernelCall& call);
void sum_blocks(const KernelCall& call);
void update_scale(const KernelCall& call);
void loss_scale(const KernelCall& call);
bool scalars_take(const Operands& o);
void adamw(const KernelCall& call);
bool adamw_takes(const Operands& o);
void sgd(const KernelCall& call);
bool sgd_takes(const Operands& o);

void cache_write(const KernelCall& call);
void cache_write_at(const KernelCall& call);
void attention_at(const KernelCall& call);
int64_t attention_at_workspace(const KernelShapes& shapes);
void rotary_at(const KernelCall& call);
int64_t rotary_at_workspace(const KernelShapes& shapes);
void position_at(const KernelCall& call);
void take_rows(const KernelCall& call);
void take(const KernelCall& call);

void stack(const KernelCall& call);
void unstack(const KernelCall& call);
bool stack_takes(const Operands& o);
void halo_pack(const KernelCall& call);
void halo_place(const KernelCall& call);
void halo_add(const KernelCall& call);
bool halo_takes(const Operands& o);
bool halo_add_takes(const Operands& o);
void mask(const KernelCall& call);
bool mask_takes(const Operands& o);
void logsumexp(const KernelCall& call);
bool logsumexp_takes(const Operands& o);

}  // namespace kintsugi::kernels::cpu
