#include "kintsugi/profile/rank_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::profile {

using base::Json;
using base::JsonWriter;

std::string_view name_of(Part part) {
  switch (part) {
    case Part::compute:
      return "compute";
    case Part::communication:
      return "communication";
    case Part::waiting:
      return "waiting";
  }
  throw base::InternalError("profile", "no part {}", static_cast<int>(part));
}

double RankProfile::of(Part part) const {
  double sum = 0;
  for (const OperationTime& o : operations)
    if (o.part == part) sum += o.seconds;
  return sum;
}

namespace {

constexpr int64_t kMostCounted = 1'000'000'000'000'000;

Part part_of(const Json& json) {
  for (const Part part : {Part::compute, Part::communication, Part::waiting})
    if (name_of(part) == json.text()) return part;
  json.refuse("compute, communication or waiting");
}

template <typename T, typename Plain>
concept OfType = std::is_same_v<std::remove_const_t<T>, Plain>;

// One list of members for both writing and reading.
void members(auto&& v, OfType<OperationTime> auto& o) {
  v("operation", o.operation), v("phase", o.phase), v("part", o.part), v("calls", o.calls), v("seconds", o.seconds);
  v("flops", o.flops), v("memory_bytes", o.memory_bytes), v("wire_bytes", o.wire_bytes);
}
void members(auto&& v, OfType<WaitedFor> auto& w) {
  v("rank", w.rank), v("seconds", w.seconds);
}
void members(auto&& v, OfType<TransferTime> auto& t) {
  v("operation", t.operation), v("over", t.over), v("calls", t.calls), v("wire_bytes", t.wire_bytes);
  v("seconds", t.seconds), v("waiting", t.waiting), v("timed", t.timed), v("timed_seconds", t.timed_seconds);
  v("timed_bytes", t.timed_bytes);
}
void members(auto&& v, OfType<TaskTime> auto& t) {
  v("work", t.work), v("chunk", t.chunk), v("calls", t.calls), v("seconds", t.seconds);
}
void members(auto&& v, OfType<Block> auto& b) {
  v("work", b.work), v("chunk", b.chunk), v("micro_batch", b.micro_batch), v("waited_for", b.waited_for);
  v("begin", b.begin), v("end", b.end);
}
void members(auto&& v, OfType<QueueBlocks> auto& q) {
  v("queue", q.queue), v("blocks", q.blocks), v("left_out", q.left_out);
}
void members(auto&& v, OfType<InstructionTime> auto& i) {
  v("body", i.body), v("at", i.at), v("operation", i.operation), v("phase", i.phase), v("value", i.value);
  v("layer", i.layer), v("launched", i.launched), v("communicates", i.communicates), v("calls", i.calls);
  v("seconds", i.seconds);
  v("waiting", i.waiting), v("flops", i.flops), v("memory_bytes", i.memory_bytes), v("wire_bytes", i.wire_bytes);
}
void members(auto&& v, OfType<RankProfile> auto& r) {
  v("rank", r.rank), v("stage", r.stage), v("steps", r.steps), v("seconds", r.seconds), v("inputs", r.inputs);
  v("between", r.between), v("operations", r.operations), v("waits", r.waits), v("transfers", r.transfers);
  v("tasks", r.tasks), v("queues", r.queues), v("instructions", r.instructions);
}

class Writer {
 public:
  explicit Writer(JsonWriter& out) : out_(out) {}

  void operator()(const char* name, const auto& value) { put(out_.key(name), value); }

 private:
  static void put(JsonWriter& out, const std::string& text) { out.value(std::string_view(text)); }
  static void put(JsonWriter& out, Part part) { out.value(name_of(part)); }
  static void put(JsonWriter& out,
                  const auto& number) requires std::is_arithmetic_v<std::remove_cvref_t<decltype(number)>> {
    out.value(number);
  }
  template <typename T>
  static void put(JsonWriter& out, const std::vector<T>& list) {
    out.list([&] {
      for (const T& one : list) out.object([&] { members(Writer(out), one); });
    });
  }

  JsonWriter& out_;
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void operator()(const char* name, auto& value) { get(json_.at(name), value); }

 private:
  static void get(const Json& json, std::string& text) { text = json.text(); }
  static void get(const Json& json, Part& part) { part = part_of(json); }
  // Limit for drawing and summing: larger values are neither times nor counts.
  static void get(const Json& json, double& number) {
    number = json.number();
    if (std::abs(number) > 1e24) json.refuse("a number of at most 1e24");
  }
  static void get(const Json& json, bool& flag) { flag = json.boolean(); }
  template <typename T>
  static void get(const Json& json, T& number) requires std::is_integral_v<T> &&(!std::is_same_v<T, bool>) {
    number = static_cast<T>(json.whole(-1, std::min<int64_t>(std::numeric_limits<T>::max(), kMostCounted)));
  }
  template <typename T>
  static void get(const Json& json, std::vector<T>& list) {
    for (const Json& one : json.list()) members(Reader(one), list.emplace_back());
  }

  const Json& json_;
};

RankProfile read_rank(const Json& json) {
  RankProfile profile;
  members(Reader(json), profile);
  return profile;
}

}  // namespace

std::string to_json(const RankProfile& profile) {
  JsonWriter out;
  out.object([&] { members(Writer(out), profile); });
  return out.text();
}

std::string to_json(const StepProfile& profile, const std::vector<std::string>& rank_json) {
  std::string text = fmt::format("{{\"step\":{},\"ranks\":{},\"clocks\":{},\"of_ranks\":[", profile.step, profile.ranks,
                                 base::json_number(profile.clocks));
  for (size_t i = 0; i < rank_json.size(); ++i) text += (i == 0 ? "\n" : ",\n") + rank_json[i];
  return text + "\n]}\n";
}

RankProfile rank_profile_of(const std::string& json, const std::string& name) {
  return read_rank(Json::parse("profile", name, json));
}

StepProfile step_profile_of(const std::string& json, const std::string& name) {
  const Json all = Json::parse("profile", name, json);
  StepProfile profile = {.step = all.at("step").whole(),
                         .ranks = static_cast<int>(all.at("ranks").whole(1, std::numeric_limits<int>::max())),
                         .clocks = all.at("clocks").number()};
  for (const Json& rank : all.at("of_ranks").list()) profile.of_ranks.push_back(read_rank(rank));
  return profile;
}

}  // namespace kintsugi::profile
