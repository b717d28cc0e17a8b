#include "kintsugi/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "kintsugi/program/describe.h"
#include "kintsugi/report/trace_writer.h"

namespace kintsugi::report {
namespace {

using program::Program;
using simulate::Simulated;
using Span = simulate::Span;

class Trace {
 public:
  Trace(const std::vector<Program>& stages, program::Step step, const Simulated& simulated)
      : stages_(stages), step_(step), simulated_(simulated) {}

  std::string write() {
    for (size_t s = 0; s < stages_.size(); ++s)
      out_.group(stage_track(static_cast<int>(s)), fmt::format("stage {}", s));
    std::vector<const Span*> spans;
    for (const Span& span : simulated_.spans) spans.push_back(&span);
    std::ranges::stable_sort(spans, {}, [](const Span* span) { return span->begin; });
    for (const Span* span : spans) add(*span);
    return out_.take();
  }

 private:
  // Tracks of one kind of a stage, by the end of their last span.
  struct Lane {
    uint64_t track = 0;
    double end = 0;
  };

  static uint64_t stage_track(int stage) { return static_cast<uint64_t>(stage) + 1; }

  void add(const Span& span) {
    if (span.axis < 0) {
      const Program& p = stages_[static_cast<size_t>(span.stage)];
      slice(track(span, span.stage, "kernels"), span, describe(p, p.list(step_).calls[span.call]));
      return;
    }
    const std::string& axis = simulated_.axes[static_cast<size_t>(span.axis)];
    if (span.to < 0) {
      slice(track(span, span.stage, axis), span, axis);
      return;
    }
    ++flows_;
    slice(track(span, span.stage, axis + ", sent"), span, fmt::format("to stage {}", span.to), Flow::through);
    slice(track(span, span.to, axis + ", received"), span, fmt::format("from stage {}", span.stage), Flow::ends);
  }

  // A track that is free at that time.
  uint64_t track(const Span& span, int stage, const std::string& name) {
    std::vector<Lane>& lanes = lanes_[{stage, name}];
    for (Lane& lane : lanes)
      if (lane.end <= span.begin) {
        lane.end = span.end;
        return lane.track;
      }
    const uint64_t uuid = stages_.size() + 1 + num_tracks_++;
    lanes.push_back({uuid, span.end});
    out_.track(uuid, name, stage_track(stage));
    return uuid;
  }

  void slice(uint64_t track, const Span& span, const std::string& name, Flow flow = Flow::none) {
    out_.begin(track, std::llround(span.begin * 1e9), name, flow, flows_);
    out_.end(track, std::llround(span.end * 1e9));
  }

  const std::vector<Program>& stages_;
  program::Step step_;
  const Simulated& simulated_;
  std::map<std::pair<int, std::string>, std::vector<Lane>> lanes_;
  uint64_t num_tracks_ = 0, flows_ = 0;
  TraceWriter out_{1};
};

}  // namespace

std::string trace(const std::vector<Program>& stages, program::Step step, const Simulated& simulated) {
  return Trace(stages, step, simulated).write();
}

}  // namespace kintsugi::report
