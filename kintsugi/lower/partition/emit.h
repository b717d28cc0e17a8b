// Emits instructions and buffers of a program: kernels on local blocks, and conversions of values between layouts.
// Without a cursor: each function takes the body that receives its instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/lower/partition/conversion.h"
#include "kintsugi/lower/partition/stages.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

using mesh::Layout;
using program::BufferId;

using BodyId = int;  // index into Program::bodies
constexpr BodyId kNoBody = -1;

// Where an instruction goes, and which operation requested it.
struct Site {
  BodyId body = kNoBody;
  std::string_view by = {};  // kind of the operation
  program::Phase phase = program::Phase::forward;
  int layer = 0;
};

class Emitter {
 public:
  // `writes`: false leaves the bodies empty, for a trial that only needs buffers and their layouts.
  Emitter(program::Program& p, const graph::OpTable& operations, Stages stages = {}, bool writes = true)
      : p_(p), operations_(operations), stages_(std::move(stages)), writes_(writes) {}

  program::Program& program() { return p_; }
  const program::Program& program() const { return p_; }
  const mesh::Mesh& mesh() const { return p_.mesh; }
  const Stages& stages() const { return stages_; }
  const graph::OpTable& operations() const { return operations_; }
  const graph::OpRow& row(std::string_view kind) const { return operations_.find(kind); }
  // The body for that work of a chunk, created if necessary.
  BodyId body_for(program::Work work, int chunk);
  const program::Body& body(BodyId id) const { return p_.bodies[static_cast<size_t>(id)]; }
  int stage(BodyId id) const { return body(id).stage; }

  // A buffer for the local block of a value in that layout.
  BufferId block(const std::string& name, const tensor::Type& whole, const Layout& layout);
  BufferId add(program::Buffer b);
  // The memory of `of` from byte `shift`.
  BufferId view(BufferId of, const std::string& name, const tensor::Type& whole, const Layout& layout, int64_t shift);
  // The part of this rank along `factors` of `of`, cut at the first dim with more than one element.
  BufferId part(BufferId of, const Layout& layout, std::vector<mesh::Factor> factors);

  // The returned reference is valid until the next instruction of its body is emitted.
  program::Instruction& compute(const Site& site, const graph::OpRow& row, const tensor::Attributes& attributes,
                                std::vector<BufferId> ins, std::vector<BufferId> outs, tensor::Absent absent = {});
  // Adds `from` to `to`, or overwrites it.
  void add_to(const Site& site, BufferId from, BufferId to);
  void replace(const Site& site, BufferId from, BufferId to);
  // One step of a conversion. `destroy`: the source is no longer needed and may be overwritten in place.
  BufferId move(BufferId from, const Step& step, const Site& site, bool destroy);
  // All-gather whose input is a part of its output.
  void gather_in_place(BufferId mine, BufferId to, const Step& step, const Site& site);
  // Whether the parts of a block along a dim, cut by the factors, are contiguous.
  bool contiguous(const tensor::Shape& joined, const std::string& dim, const std::vector<mesh::Factor>& factors) const;
  // A message from the body `from`, which has the buffer, to the body of the site; returns the received buffer.
  BufferId message(BufferId b, BodyId from, const Site& site);
  // Sends each rank's block to its neighbor in the ring of `factors`.
  BufferId shift(BufferId from, const std::vector<mesh::Factor>& factors, const Site& site);

 private:
  program::Instruction& emit(const Site& site);
  void collective(const Site& site, program::Collective kind, BufferId in, BufferId out, const Step& step);
  void rearrange(const Site& site, std::string_view kind, BufferId in, BufferId out, program::Cuts cuts);
  std::string channel_of(BodyId receiver, int sender) const;
  BufferId stacked(BufferId like, const tensor::Shape& block, int64_t parts);
  BufferId exchange_halo(BufferId from, const Step& step, const Site& site);

  program::Program& p_;
  const graph::OpTable& operations_;
  Stages stages_;
  bool writes_;
  program::Instruction unwritten_;
};

}  // namespace kintsugi::lower
