// Time of a pass over any number of layers, extrapolated from a compiled run of very few: the steps of an inner layer
// are repeated.
//
// A lower bound of the pass of the whole run: work of only the first or last layer is omitted, and so is everything
// that comes from outside the stage.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "kintsugi/program/queue.h"
#include "kintsugi/search/candidate.h"
#include "kintsugi/search/clock.h"
#include "kintsugi/simulate/kernel_costs.h"

namespace kintsugi::search {

// A kernel, the start of a collective, or the wait for one.
struct Step {
  enum class Kind : uint8_t { kernel, start, wait };
  Kind kind = Kind::kernel;
  bool over_data = false;  // communication over the data axis, or of states over the context axis only
  bool of_step = false;    // a start that another body awaits, before the update
  bool hands_on = false;   // produces what another layer consumes
  bool takes_up = false;   // consumes what the adjacent layer produced in the same pass
  int layer = 0;           // the embedding is -1, the head follows the last
  double seconds = 0;      // of a kernel
  simulate::TransferTime transfer = {};
  int queue = -1;
  int event = -1;
  const program::Instruction* instruction = nullptr;  // in the program
};

// The steps of a program compiled for at most two ranks of the data axis, as they are in a candidate with more.
class Steps {
 public:
  // `whole`: the mesh of the candidate, of one stage. `slowest`: factor by which all kernels wait for those of the
  // slowest device. The other arguments must outlive it.
  Steps(const program::Program& p, mesh::Mesh whole, const simulate::Cluster& cluster, double slowest,
        const Candidate& candidate);

  // Omits copies to files, and instructions that take no time.
  std::vector<Step> of(const program::Body& body);
  // Of a kernel, in the program as compiled.
  double seconds(const simulate::Arranged& a) const { return costs_.of(p_, a).seconds * slowest_; }
  int queues() const { return static_cast<int>(queues_.size()); }

  // Whether it is sharded over the data axis, and thus smaller with more ranks.
  bool is_shard(program::BufferId b) const;

 private:
  // Instructions that produce what other layers consume, and the consumers.
  struct Handed {
    std::set<const program::Instruction*> from, to;
  };
  Handed handed_on(const program::Body& body) const;
  bool is_data(mesh::Factor f) const { return p_.mesh.factor(f).axis == data_; }
  bool is_over_data(const program::Instruction& i) const;
  bool is_of_states(const program::Instruction& i) const;
  struct Group {
    simulate::GroupShape shape;
    double bytes = 1;  // sent per byte of the program
  };
  const Group& group_of(const program::Queue& queue);

  const program::Program& p_;
  const mesh::Mesh whole_;
  int data_ = -1;  // index of the data axis in the program's mesh
  const simulate::Cluster& cluster_;
  const double slowest_;
  const Candidate& candidate_;
  const simulate::KernelCosts costs_;
  std::map<program::Queue, int> queues_;
  std::map<program::Queue, Group> groups_;
};

// The layers of a pass.
struct PassRange {
  std::vector<int> kinds = {};  // of the layers, in model order
  bool embedding = false, head = false;
};

// result: until the last layer has produced what the next stage consumes. sums: from its end to that of the step's
// reductions that it has started.
struct PassSeconds {
  double all = 0, result = 0, sums = 0;
};

class PassTimes {
 public:
  // `list`: the steps of a pass over three layers of each kind, with the sequence of kinds repeated three times.
  PassTimes(const std::vector<Step>& list, int kinds, int queues);

  // `late`: measures from the arrival of what another stage sends, with everything done that does not depend on it.
  PassSeconds seconds(const simulate::Cluster& cluster, const PassRange& range, bool late = false) const;

 private:
  // A step of an inner layer, or of one adjacent to it.
  struct Placed {
    Step step;
    int beside = 0;  // the previous layer in pass order: -1; the layer itself: 0; the next: 1
    int event = -1;  // equal for the same collective of any layer
  };
  // A step of the embedding or the head, or a gather for the first layer of the pass, which begins before it.
  struct Piece {
    enum class Of : uint8_t { embedding, head, first_layer };
    enum class Place : uint8_t { front, first, last };  // before all layers, or with one of them
    Step step;
    Of of = Of::embedding;
    Place place = Place::front;
    int event = -1;
  };

  int kinds_ = 1, queues_ = 0, events_ = 0;
  bool ascending_ = true;
  std::vector<std::vector<Placed>> blocks_;  // [kind]
  std::vector<Piece> pieces_;
};

}  // namespace kintsugi::search
