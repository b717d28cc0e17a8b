#include "tests/nccl/standin.h"

#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::tests::nccl {
namespace {

using tensor::DType;

enum class What { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, receive };

struct Call {
  What what = What::send;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  size_t count = 0;
  int type = 0, reduction = 0;
  int root = -1;  // of messages: the other rank

  bool is_message() const { return what == What::send || what == What::receive; }
  bool like(const Call& o) const {
    return what == o.what && count == o.count && type == o.type && reduction == o.reduction && root == o.root;
  }
};

// What one rank enqueued as a unit: a collective, or the calls between ncclGroupStart and ncclGroupEnd.
struct Launch {
  int rank = 0;
  bool entered = false;  // the stream has come to it
  std::function<void()> come_to_it;
  std::vector<struct Meeting*> meetings;
  std::vector<size_t> places;  // in each
};

// A collective, or a message: the participants, each with a call.
struct Meeting {
  std::deque<std::atomic<Launch*>> launches;  // by member; of a message: from, to. Null: has not enqueued it
  std::vector<char> joined;
  std::vector<Call> calls;
  bool done = false;

  explicit Meeting(size_t members) : launches(members), joined(members), calls(members) {}
};

struct Group {
  int ranks = 0, joined = 0;
  std::deque<std::unique_ptr<Meeting>> collectives;
  std::map<std::pair<int, int>, std::deque<std::unique_ptr<Meeting>>> messages;  // by from and to
  std::set<std::pair<int, int>> called;  // ranks, by who sent to or asked for a message of whom
  std::vector<size_t> next;              // collective, by rank
  std::map<std::pair<int, int>, std::pair<size_t, size_t>> next_message;  // sent, received
  std::deque<std::unique_ptr<Launch>> launches;
};

struct Comm {
  std::shared_ptr<Group> group;
  int rank = 0;
  bool alive = true;
};

Standin& standin() {
  static Standin all;
  return all;
}

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

std::condition_variable& joined() {
  static std::condition_variable one;
  return one;
}

std::map<uint64_t, std::shared_ptr<Group>>& groups() {
  static std::map<uint64_t, std::shared_ptr<Group>> all;
  return all;
}

// This thread's calls since ncclGroupStart.
struct Pending {
  int depth = 0;
  struct Item {
    Comm* comm;
    void* stream;
    Call call;
  };
  std::vector<Item> items;
};
thread_local Pending pending;

ncclResult_t broken(std::string rule) {
  standin().broken.push_back(std::move(rule));
  return ncclInvalidUsage;
}

size_t bytes_of(int type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

template <typename F>
void for_type(int type, const F& f) {
  switch (type) {
    case ncclInt32:
      return f(int32_t());
    case ncclInt64:
      return f(int64_t());
    case ncclFloat16:
      return f(tensor::f16());
    case ncclBfloat16:
      return f(tensor::bf16());
    case ncclFloat32:
      return f(float());
    default:
      return f(double());
  }
}

// Reduces `count` elements from element `from` on, the last rank first.
std::vector<std::byte> reduced(const Meeting& m, size_t from, size_t count) {
  const Call& c = m.calls[0];
  std::vector<std::byte> all(count * bytes_of(c.type));
  for_type(c.type, [&]<typename T>(T) {
    using W = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;
    for (size_t i = 0; i < count; ++i) {
      W sum = {};
      for (size_t r = m.calls.size(); r-- > 0;) {
        T x;
        std::memcpy(&x, m.calls[r].in + (from + i) * sizeof(T), sizeof(T));
        const auto w = static_cast<W>(x);
        if (r + 1 == m.calls.size())
          sum = w;
        else if (c.reduction == ncclMax)
          sum = std::max(sum, w);
        else if (c.reduction == ncclMin)
          sum = std::min(sum, w);
        else
          sum += w;
      }
      if (c.reduction == ncclAvg) sum /= static_cast<W>(m.calls.size());
      const auto y = T(sum);
      std::memcpy(all.data() + i * sizeof(T), &y, sizeof(T));
    }
  });
  return all;
}

void put(std::byte* out, const std::vector<std::byte>& all) {
  std::memcpy(out, all.data(), all.size());
}

void perform(const Meeting& m) {
  const Call& c = m.calls[0];
  const size_t members = m.calls.size(), bytes = c.count * bytes_of(c.type);
  switch (c.what) {
    case What::send:
    case What::receive:
      std::memcpy(m.calls[1].out, m.calls[0].in, bytes);
      return;
    case What::all_reduce: {
      const auto all = reduced(m, 0, c.count);
      for (const Call& o : m.calls) put(o.out, all);
      return;
    }
    case What::reduce:
      return put(m.calls[static_cast<size_t>(c.root)].out, reduced(m, 0, c.count));
    case What::broadcast:
      for (const Call& o : m.calls)
        if (o.out != m.calls[static_cast<size_t>(c.root)].in)
          std::memcpy(o.out, m.calls[static_cast<size_t>(c.root)].in, bytes);
      return;
    case What::all_gather: {
      std::vector<std::byte> all;
      for (const Call& o : m.calls) all.insert(all.end(), o.in, o.in + bytes);
      for (const Call& o : m.calls) put(o.out, all);
      return;
    }
    case What::reduce_scatter: {
      std::vector<std::vector<std::byte>> parts;
      for (size_t r = 0; r < members; ++r) parts.push_back(reduced(m, r * c.count, c.count));
      for (size_t r = 0; r < members; ++r) put(m.calls[r].out, parts[r]);
      return;
    }
  }
}

// A stream reached an operation of its rank: waits for the other participants, then performs it. Throws what not_yet()
// throws while one of them has not called.
void enter(Launch& launch) {
  if (launch.entered) return;
  launch.entered = true;
  try {
    for (Meeting* m : launch.meetings) {
      for (const auto& other : m->launches) {
        Launch* const theirs = other.load();
        if (theirs == nullptr) standin().not_yet();
        if (!theirs->entered) theirs->come_to_it();
      }
      if (m->done) continue;
      m->done = true;
      perform(*m);
    }
  } catch (...) {
    launch.entered = false;
    throw;
  }
}

// Requires the lock. The meeting that this call joins, at the caller's place.
ncclResult_t join(Comm& comm, const Call& call, Launch& launch) {
  Group& g = *comm.group;
  size_t place = static_cast<size_t>(comm.rank);
  Meeting* meeting = nullptr;
  if (call.is_message()) {
    const bool sends = call.what == What::send;
    if (call.root < 0 || call.root >= g.ranks || call.root == comm.rank) return broken("a message to nobody");
    const std::pair<int, int> way = sends ? std::pair(comm.rank, call.root) : std::pair(call.root, comm.rank);
    auto& [sent, received] = g.next_message[way];
    const size_t number = sends ? sent++ : received++;
    auto& list = g.messages[way];
    while (list.size() <= number) list.push_back(std::make_unique<Meeting>(2));
    meeting = list[number].get();
    place = sends ? 0 : 1;
    const size_t other = 1 - place;
    if (meeting->joined[other] && meeting->calls[other].count != call.count)
      return broken(fmt::format("a message of {} bytes is received in {}", meeting->calls[0].count, call.count));
    ++standin().messages;
  } else {
    const size_t number = g.next[place]++;
    while (g.collectives.size() <= number)
      g.collectives.push_back(std::make_unique<Meeting>(static_cast<size_t>(g.ranks)));
    meeting = g.collectives[number].get();
    for (size_t r = 0; r < meeting->calls.size(); ++r)
      if (meeting->joined[r] && !meeting->calls[r].like(call))
        return broken(fmt::format("ranks {} and {} call different collectives", comm.rank, r));
    ++standin().collectives;
  }
  meeting->joined[place] = true;
  meeting->calls[place] = call;
  launch.meetings.push_back(meeting);
  launch.places.push_back(place);
  return ncclSuccess;
}

// The first message between two ranks connects both, so the call returns after the other rank has called too.
ncclResult_t connect(const std::vector<Pending::Item>& items) {
  std::unique_lock lock(mutex());
  for (const auto& [comm, stream, call] : items)
    if (call.is_message()) comm->group->called.insert({comm->rank, call.root});
  joined().notify_all();
  for (const auto& [comm, stream, call] : items)
    if (call.is_message() && !joined().wait_for(lock, std::chrono::seconds(5), [&] {
          return comm->group->called.contains({call.root, comm->rank});
        }))
      return broken(
          fmt::format("rank {} has no message for rank {}, which waits for its first", call.root, comm->rank));
  return ncclSuccess;
}

// Enqueues a unit in the stream.
ncclResult_t launch_once(const std::vector<Pending::Item>& items, void* stream) {
  Launch* launch = nullptr;
  {
    const std::lock_guard lock(mutex());
    Comm& comm = *items[0].comm;
    comm.group->launches.push_back(std::make_unique<Launch>());
    launch = comm.group->launches.back().get();
    launch->rank = comm.rank;
    for (const Pending::Item& item : items)
      if (const ncclResult_t result = join(comm, item.call, *launch); result != ncclSuccess) return result;
    Launched& launched = standin().order[std::this_thread::get_id()].emplace_back();
    launched.communicator = &comm;
    launched.message = items.size() == 1 && items[0].call.is_message();
    for (const Meeting* m : launch->meetings) launched.parts.push_back({m, m->calls.size()});
  }
  standin().enqueue(stream, [launch] { enter(*launch); });
  launch->come_to_it = standin().all_until_here(stream);
  for (size_t i = 0; i < launch->meetings.size(); ++i) launch->meetings[i]->launches[launch->places[i]] = launch;
  return ncclSuccess;
}

ncclResult_t launch_all(std::vector<Pending::Item> items) {
  if (items.empty()) return ncclSuccess;
  {
    const std::lock_guard lock(mutex());
    for (const auto& [c, stream, call] : items) {
      if (c != items[0].comm || stream != items[0].stream) return broken("a group of calls in several streams");
      if (!c->alive) return broken("a call of a communicator that has ended");
      if (stream == nullptr) return broken("the default stream");
      if (call.count == 0) return broken("a call of nothing");
    }
  }
  if (const ncclResult_t connected = connect(items); connected != ncclSuccess) return connected;
  auto result = std::make_shared<ncclResult_t>(ncclSuccess);
  standin().at_each_launch(items[0].stream, [items, result](void* stream) { *result = launch_once(items, stream); });
  return *result;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, Call call) {
  pending.items.push_back({reinterpret_cast<Comm*>(comm), stream, call});
  if (pending.depth > 0) return ncclSuccess;
  return launch_all(std::exchange(pending.items, {}));
}

const std::byte* in(const void* data) {
  return static_cast<const std::byte*>(data);
}
std::byte* out(void* data) {
  return static_cast<std::byte*>(data);
}

}  // namespace
}  // namespace kintsugi::tests::nccl

using namespace kintsugi::tests::nccl;

extern "C" {

Standin* kintsugi_nccl_standin() {
  return &standin();
}

[[gnu::used]] static const char build_text[] = "NCCL version 2.28.9+cuda12.9";

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex());
  static uint64_t number = 0;
  ++number;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &number, sizeof number);
  groups()[number] = std::make_shared<Group>();
  ++standin().groups;
  return ncclSuccess;
}

// Returns when all ranks have called it, like the real one.
ncclResult_t ncclCommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  std::unique_lock lock(mutex());
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  if (!groups().contains(number)) return broken("an id that was not made");
  const std::shared_ptr<Group> group = groups()[number];
  if (group->ranks != 0 && group->ranks != ranks) return broken("ranks of different counts");
  group->ranks = ranks;
  group->next.resize(static_cast<size_t>(ranks));
  ++group->joined;
  joined().notify_all();
  if (!joined().wait_for(lock, std::chrono::seconds(60), [&] { return group->joined == ranks; }))
    return broken("a rank did not come");
  *made = reinterpret_cast<ncclComm_t>(new Comm{.group = group, .rank = rank});
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  reinterpret_cast<Comm*>(comm)->alive = false;  // kept: work that is enqueued may name it
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  ++standin().aborted;
  if (pending.depth > 0) ++standin().aborted_at_once;
  reinterpret_cast<Comm*>(comm)->alive = false;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  const std::lock_guard lock(mutex());
  *result = static_cast<ncclResult_t>(standin().async_error);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error of the stand-in";
}

ncclResult_t ncclGroupStart() {
  ++pending.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (pending.depth == 0) return broken("a group ends that did not begin");
  if (--pending.depth > 0) return ncclSuccess;
  return launch_all(std::exchange(pending.items, {}));
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {What::all_reduce, in(from), out(to), count, type, reduction});
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t reduction, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {What::reduce, in(from), out(to), count, type, reduction, root});
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(comm, stream, {What::broadcast, in(from), out(to), count, type, 0, root});
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(comm, stream, {What::all_gather, in(from), out(to), count, type});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {What::reduce_scatter, in(from), out(to), count, type, reduction});
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {What::send, in(data), nullptr, count, type, 0, peer});
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {What::receive, nullptr, out(data), count, type, 0, peer});
}

}  // extern "C"
