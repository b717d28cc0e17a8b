#include "kintsugi/comm/mpi/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "kintsugi/base/watchdog.h"
#include "kintsugi/comm/mpi/check.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::comm {
namespace {

// Maximum time that an ending rank waits for the others of its node to report what they waited for: usually they do so
// at once, but a computing rank does not poll. Longer if others must read files first.
constexpr std::chrono::milliseconds kToSay{3000}, kToRead{1000};
// Time for the launcher to forward what was printed.
constexpr std::chrono::milliseconds kToPrint{100};

// A random name, the same on all ranks of `comm`.
std::string common_name(MPI_Comm comm) {
  std::random_device random;
  uint64_t id = static_cast<uint64_t>(random()) << 32 | random();
  check_mpi(MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm));
  return fmt::format("kintsugi_{:016x}", id);
}

// Whether the count after `key`, at the beginning of a line of `text`, exceeds `number`.
Arrival arrival_in(const std::string& text, const std::string& key, uint64_t number) {
  if (text.empty()) return Arrival::unknown;
  const size_t at = ("\n" + text).find("\n" + key);
  if (at == std::string::npos) return Arrival::absent;
  return std::strtoull(text.c_str() + at + key.size(), nullptr, 10) > number ? Arrival::arrived : Arrival::absent;
}

}  // namespace

MpiProcess::MpiProcess(const WorldOptions& options)
    : time_limit(options.time_limit), folder_(options.folder), exceptions_(std::uncaught_exceptions()) {
  int is_there = 0, level = 0;
  const base::Watchdog watchdog("comm", launch::this_process().rank, "the start of MPI",
                                "; did all ranks start, and with the same verb?", time_limit);
  check_mpi(MPI_Initialized(&is_there));
  if (is_there != 0)
    throw base::UserError("comm",
                          "MPI starts once in a process, and this command starts ranks more than once; use transport "
                          "= \"threads\"");
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));  // inherited by derived communicators
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &agreement));

  MPI_Comm node = MPI_COMM_NULL;
  if (options.share_memory) {
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
  } else {
    check_mpi(MPI_Comm_dup(MPI_COMM_SELF, &node));
  }
  int local_rank = 0, local_size = 0;
  check_mpi(MPI_Comm_rank(node, &local_rank));
  check_mpi(MPI_Comm_size(node, &local_size));
  name_ = common_name(MPI_COMM_WORLD);
  const ProgressTable::Place place = {.path = "/dev/shm/" + common_name(node),
                                      .create = local_rank == 0,
                                      .local_rank = local_rank,
                                      .local_size = local_size,
                                      .world_size = size};
  if (local_rank == 0) progress = std::make_unique<ProgressTable>(place);
  check_mpi(MPI_Barrier(node));
  if (local_rank != 0) progress = std::make_unique<ProgressTable>(place);
  check_mpi(MPI_Barrier(node));
  if (local_rank == 0) unlink(place.path.c_str());  // the memory persists until the last rank ends, however it ends

  std::vector<int> here(local_size);
  check_mpi(MPI_Allgather(&rank, 1, MPI_INT, here.data(), 1, MPI_INT, node));
  local_ranks_.assign(size, -1);
  for (int i = 0; i < local_size; ++i) local_ranks_[here[i]] = i;
  check_mpi(MPI_Comm_free(&node));
  if (local_size == size) folder_.clear();
  elsewhere_.resize(size);
}

MpiProcess::~MpiProcess() {
  if (failed || progress->ended() || std::uncaught_exceptions() > exceptions_) {
    fmt::print(stderr, "error: [comm] rank {} left the run early, {}\n", rank,
               std::uncaught_exceptions() > exceptions_ ? "by an error that nobody caught in time"
               : failed                                 ? "before all that it sends and receives was done"
                                                        : "after another: " + progress->why());
    abort("it left the run early");
  }
  const base::Watchdog watchdog("comm", rank, "the end of MPI", "; did another rank fail to finish?", time_limit);
  comms.free_all();
  MPI_Comm_free(&agreement);
  MPI_Finalize();
}

void MpiProcess::abort(const std::string& why) {
  progress->end(fmt::format("rank {} ended: {}", rank, why), false);
  std::fflush(nullptr);
  progress->report();
  const auto begin = std::chrono::steady_clock::now();
  const auto to_say = std::min(kToSay, time_limit);
  const auto waits = [&] {
    const auto waited = std::chrono::steady_clock::now() - begin;
    return (!progress->all_reported() && waited < to_say) || (!folder_.empty() && waited < kToRead);
  };
  while (waits()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(kToPrint);
  for (int r = 0; r < size && !folder_.empty(); ++r) unlink(file(r).c_str());  // of all ranks: none of them continues
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

void MpiProcess::throw_end(const TimeoutMessage& own, const base::Patience& waited) {
  const std::string why = progress->why();
  if (why.empty()) throw_timeout(own);  // the rank that should have reported it was killed before
  if (!progress->out_of_time()) throw Timeout(why, {}, {});
  if (why == own.text) throw_timeout(own);
  if (const double seconds = waited.stood_still().count(); seconds >= 0.5)
    throw Timeout(fmt::format("rank {} was suspended for {:.1f} s, and the others timed out: {}", rank, seconds, why),
                  {}, {});
  if (!waited.is_long())
    throw Timeout(fmt::format("rank {} arrived after the others had timed out: {}", rank, why), {}, {});
  if (own.absent) throw_timeout(own);
  throw Timeout(why, {}, {});
}

std::string MpiProcess::file(int world_rank) const {
  return fmt::format("{}/{}_rank_{}", folder_, name_, world_rank);
}

// The file appears atomically. A rank that has waited equally long writes its file while this one waits for it.
void MpiProcess::read_other_nodes(const std::vector<int>& world_ranks) {
  if (folder_.empty()) return;
  const std::string half = file(rank) + ".new";
  std::ofstream(half) << progress->text() << "end\n";
  std::rename(half.c_str(), file(rank).c_str());
  const auto end = std::chrono::steady_clock::now() + kToRead / 2;
  for (bool all = false; !all && std::chrono::steady_clock::now() < end;) {
    all = true;
    for (const int r : world_ranks) {
      if (local_rank(r) >= 0 || !elsewhere_[r].empty()) continue;
      std::ifstream in(file(r));
      elsewhere_[r].assign(std::istreambuf_iterator<char>(in), {});
      all &= !elsewhere_[r].empty();
    }
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Arrival MpiProcess::collective_elsewhere(int world_rank, int row, uint64_t number) const {
  return arrival_in(elsewhere_[world_rank], fmt::format("collectives {} ", row), number);
}

Arrival MpiProcess::message_elsewhere(int world_rank, int row, int member, bool send, uint64_t number) const {
  return arrival_in(elsewhere_[world_rank], fmt::format("messages {} {} {} ", row, member, send ? 1 : 0), number);
}

void Backoff::pause() {
  const auto waited = Clock::now() - begin_;
  if (waited < std::chrono::microseconds(50)) return;
  if (waited < std::chrono::milliseconds(2)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace kintsugi::comm
