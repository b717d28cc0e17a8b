// The seconds of a pass over any number of layers, from a compiled run of very few: what stands between others there is
// put together so often.
//
// Less than the pass of the whole run takes: what only its first or last layer does is left out, and so is all that
// comes from outside the stage.
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
  bool over_data = false;  // what goes over the data axis, or of states over the context axis alone
  bool of_step = false;    // a start that another body awaits, before the update
  bool hands_on = false;   // makes what another layer takes up
  bool takes_up = false;   // reads what the layer beside it made in the same pass
  int layer = 0;           // the embedding's is -1, the head's is behind the last
  double seconds = 0;      // of a kernel
  simulate::TransferTime transfer = {};
  int queue = -1;
  int event = -1;
  const program::Instruction* instruction = nullptr;  // of the program
};

// The steps of a program that was compiled for at most two ranks of the data axis, as they are in a candidate with
// more.
class Steps {
 public:
  // `slowest`: by which the kernels of all wait for those of the slowest device. All outlive it.
  Steps(const program::Program& p, const simulate::Cluster& cluster, double slowest, const Candidate& candidate);

  // Copies to files, and what takes no time, are left out.
  std::vector<Step> of(const program::Body& body);
  // Of a kernel, in the program as it is.
  double seconds(const simulate::Arranged& a) const { return costs_.of(p_, a).seconds * slowest_; }
  int queues() const { return static_cast<int>(queues_.size()); }

  // Whether ranks of the data axis hold parts of it, which are smaller where there are more of them.
  bool is_shard(program::BufferId b) const;

 private:
  // Instructions that make what others take up, and those that do.
  struct Handed {
    std::set<const program::Instruction*> from, to;
  };
  Handed handed_on(const program::Body& body) const;
  bool is_data(mesh::Factor f) const;
  bool is_over_data(const program::Instruction& i) const;
  bool is_of_states(const program::Instruction& i) const;
  simulate::TransferTime transfer(const program::Instruction& i, const program::Queue& queue) const;

  const program::Program& p_;
  const simulate::Cluster& cluster_;
  const double slowest_;
  const Candidate& candidate_;
  const simulate::KernelCosts costs_;
  std::map<program::Queue, int> queues_;
};

// Of the layers that a pass goes through.
struct PassRange {
  std::vector<int> kinds = {};  // of the layers, in their order in the model
  bool embedding = false, head = false;
};

// result: until the last of the layers has made what the next stage takes up. sums: from its end until that of the sums
// that it has started for the step.
struct PassSeconds {
  double all = 0, result = 0, sums = 0;
};

class PassTimes {
 public:
  // `list`: the steps of a pass over three layers of each kind, in the order of the kinds, three times.
  PassTimes(const std::vector<Step>& list, int kinds, int queues);

  // `late`: from when what another stage sends comes, all being done that does not need it.
  PassSeconds seconds(const simulate::Cluster& cluster, const PassRange& range, bool late = false) const;

 private:
  // A step of a layer between others, or of one beside it.
  struct Placed {
    Step step;
    int beside = 0;  // the layer before in the order of the pass: -1; itself; the next: 1
    int event = -1;  // the same for the same collective of any layer
  };
  // Of the embedding or the head, or what is gathered for the first layer of the pass, which begins before it.
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
  std::vector<std::vector<Placed>> blocks_;  // by kind
  std::vector<Piece> pieces_;
};

}  // namespace kintsugi::search
