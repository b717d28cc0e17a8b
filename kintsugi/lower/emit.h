// Writes instructions and buffers of a program: kernels on local blocks, and what moves a value from one layout to
// another.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/lower/conversion.h"
#include "kintsugi/lower/stages.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

using mesh::Layout;
using program::BufferId;

// Where an instruction belongs, and what asked for it.
struct Asked {
  std::string by;  // the kind of the operation
  std::string phase;
  int layer = 0;
};

class Emitter {
 public:
  explicit Emitter(program::Program& p, Stages stages = {}) : p_(p), stages_(std::move(stages)) {}

  program::Program& program() { return p_; }
  const mesh::Mesh& mesh() const { return p_.mesh; }
  const Stages& stages() const { return stages_; }
  // Instructions go to the body for that work with a chunk, which is made where there is none; or to one of that name.
  void enter(const std::string& work, int chunk, bool at_position = false);
  void select(const std::string& body);
  const std::string& selected() const { return body().name; }
  const std::string& work() const { return body().work; }
  int chunk() const { return body().chunk; }
  int stage() const { return body().stage; }

  // A buffer for the local block of a value that lies so.
  BufferId block(const std::string& name, const tensor::Type& whole, const Layout& layout);
  BufferId add(program::Buffer b);
  // The memory of `of` from `shift` bytes on.
  BufferId view(BufferId of, const std::string& name, const tensor::Type& whole, const Layout& layout, int64_t shift);
  // The part of this rank along `factors` of `of`, whose first dim of more than one element is cut.
  BufferId part(BufferId of, const Layout& layout, std::vector<mesh::Factor> factors);

  void compute(const Asked& asked, const graph::OpRow& row, const tensor::Attributes& attributes,
               std::vector<BufferId> ins, std::vector<BufferId> outs, std::string kernel = {}, uint32_t accumulate = 0,
               tensor::Absent absent = {});
  // One step of a conversion. `destroy`: the source is not needed any more, and may be worked on in place.
  BufferId move(BufferId from, const Step& step, const Asked& asked, bool destroy);
  // Every part from where it stands to where it is stored: an all-gather whose input is a part of its output.
  void gather_in_place(BufferId mine, BufferId to, const Step& step, const Asked& asked);
  // Whether the parts of a block along a dim, cut by the factors, lie one behind another as they are.
  bool contiguous(const tensor::Shape& joined, const std::string& dim, const std::vector<mesh::Factor>& factors) const;
  // A message from the body `from`, where the buffer is, to the body that is selected; gives what is received.
  BufferId message(BufferId b, const std::string& from, const Asked& asked);
  // Each rank's block goes to its neighbour in the ring of `factors`.
  BufferId shift(BufferId from, const std::vector<mesh::Factor>& factors, const Asked& asked);

 private:
  program::Instruction& emit(const Asked& asked);
  void collective(const Asked& asked, const char* kind, BufferId in, BufferId out, const Step& step);
  void rearrange(const Asked& asked, const char* kernel, BufferId in, BufferId out, program::Cuts cuts);
  BufferId stacked(BufferId like, const tensor::Shape& block, int64_t parts);

  const program::Body& body() const { return p_.bodies[static_cast<size_t>(body_)]; }

  program::Program& p_;
  Stages stages_;
  int body_ = -1;
};

}  // namespace kintsugi::lower
