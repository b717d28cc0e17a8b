// Writes instructions and buffers of a program: kernels on local blocks, and the conversion of a value from one layout
// to another. It keeps no cursor: the body to which instructions go is an argument of each function.
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

using BodyId = int;  // a position in Program::bodies
constexpr BodyId kNoBody = -1;

// Where an instruction goes, and which operation asked for it.
struct Site {
  BodyId body = kNoBody;
  std::string_view by = {};  // the kind of the operation
  program::Phase phase = program::Phase::forward;
  int layer = 0;
};

class Emitter {
 public:
  // `writes`: false leaves the bodies empty, for a trial that asks for buffers and their layouts alone.
  Emitter(program::Program& p, const graph::OpTable& operations, Stages stages = {}, bool writes = true)
      : p_(p), operations_(operations), stages_(std::move(stages)), writes_(writes) {}

  program::Program& program() { return p_; }
  const program::Program& program() const { return p_; }
  const mesh::Mesh& mesh() const { return p_.mesh; }
  const Stages& stages() const { return stages_; }
  const graph::OpTable& operations() const { return operations_; }
  const graph::OpRow& row(std::string_view kind) const { return operations_.find(kind); }
  // The body for that work with a chunk, created if there is none.
  BodyId body_for(program::Work work, int chunk);
  const program::Body& body(BodyId id) const { return p_.bodies[static_cast<size_t>(id)]; }
  int stage(BodyId id) const { return body(id).stage; }

  // A buffer for the local block of a value in that layout.
  BufferId block(const std::string& name, const tensor::Type& whole, const Layout& layout);
  BufferId add(program::Buffer b);
  // The memory of `of` from `shift` bytes on.
  BufferId view(BufferId of, const std::string& name, const tensor::Type& whole, const Layout& layout, int64_t shift);
  // The part of this rank along `factors` of `of`, whose first dim of more than one element is cut.
  BufferId part(BufferId of, const Layout& layout, std::vector<mesh::Factor> factors);

  // The returned reference is valid until the next instruction is written to its body.
  program::Instruction& compute(const Site& site, const graph::OpRow& row, const tensor::Attributes& attributes,
                                std::vector<BufferId> ins, std::vector<BufferId> outs, tensor::Absent absent = {});
  // Adds the content of `from` to `to`, or replaces it.
  void add_to(const Site& site, BufferId from, BufferId to);
  void replace(const Site& site, BufferId from, BufferId to);
  // One step of a conversion. `destroy`: the source is not needed any more, and may be overwritten in place.
  BufferId move(BufferId from, const Step& step, const Site& site, bool destroy);
  // Every part from its place in the input to its place in the output: an all-gather whose input is a part of its
  // output.
  void gather_in_place(BufferId mine, BufferId to, const Step& step, const Site& site);
  // Whether the parts of a block along a dim, cut by the factors, are contiguous.
  bool contiguous(const tensor::Shape& joined, const std::string& dim, const std::vector<mesh::Factor>& factors) const;
  // A message from the body `from`, where the buffer is, to the body of the site; returns the received buffer.
  BufferId message(BufferId b, BodyId from, const Site& site);
  // Each rank's block goes to its neighbour in the ring of `factors`.
  BufferId shift(BufferId from, const std::vector<mesh::Factor>& factors, const Site& site);

 private:
  program::Instruction& emit(const Site& site);
  void collective(const Site& site, program::Collective kind, BufferId in, BufferId out, const Step& step);
  void rearrange(const Site& site, std::string_view kind, BufferId in, BufferId out, program::Cuts cuts);
  BufferId stacked(BufferId like, const tensor::Shape& block, int64_t parts);
  BufferId exchange_halo(BufferId from, const Step& step, const Site& site);

  program::Program& p_;
  const graph::OpTable& operations_;
  Stages stages_;
  bool writes_;
  program::Instruction unwritten_;
};

}  // namespace kintsugi::lower
