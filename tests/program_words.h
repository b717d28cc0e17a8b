// Fields of a program whose types or names may change, as words: the output of dump_programs must stay the same when
// they do. And how programs are built. The dump uses everything else directly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/program.h"

namespace kintsugi::tests {

inline std::string kernel_word(const program::Instruction& i) {
  return std::string(name_of(i));
}

inline std::string phase_word(const program::Instruction& i) {
  return std::string(name_of(i.phase));
}

// "" if nothing is reduced.
inline std::string reduction_word(const program::Instruction& i) {
  using program::Collective;
  const program::Kind started = i.kind == program::Kind::wait ? i.awaited : i.kind;
  if (started != program::Kind::collective || i.collective == Collective::shift || i.collective == Collective::halo ||
      is_message(i))
    return "";
  return std::string(name_of(i.reduction));
}

// Bytes that a kernel reads and writes, or that a collective or copy moves; 0 for a wait.
inline double bytes_of(const program::Instruction& i) {
  return i.cost.memory_bytes + i.cost.wire_bytes;
}

inline double flops_of(const program::Instruction& i) {
  return i.cost.flops;
}

inline std::string kind_word(const program::StateInfo& s) {
  return std::string(name_of(s.kind));
}

// constant, normal
inline std::string init_word(const program::StateInfo& s) {
  return s.init.kind == tensor::Init::Kind::constant ? "constant" : "normal";
}

inline double init_value(const program::StateInfo& s) {
  return s.init.value;
}

// Whether another stage has it too, and saves it.
inline bool is_copy_of_other_stage(const program::StateInfo& s) {
  return s.replica;
}

// "" for a body that only starts or awaits communication.
inline std::string work_word(const program::Body& b) {
  return b.role == program::Role::work ? std::string(name_of(b.work)) : "";
}

// For generation: whether the token index starts at the run's position.
inline bool is_at_position(const program::Body& b) {
  return !b.position_dim.empty();
}

// train, evaluate, prefill, decode
inline std::string step_word(const program::CallList& l) {
  return std::string(name_of(l.step));
}

// A training run by its settings, or with a different plan.
inline std::vector<program::Program> training_programs(const config::Settings& s,
                                                       const std::optional<plan::Plan>& plan) {
  return compile::compile({.settings = s, .kernels = *compile::kernels_of(s), .plan = plan ? &*plan : nullptr});
}

// Evaluation or generation.
inline std::vector<program::Program> model_programs(const config::Settings& s, const models::Graphs& graphs) {
  return compile::compile({.settings = s, .kernels = *compile::kernels_of(s), .graphs = &graphs});
}

}  // namespace kintsugi::tests
