#include "kintsugi/comm/mpi/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "kintsugi/comm/mpi/check.h"

namespace kintsugi::comm {
namespace {

// For the others to print a line each.
constexpr std::chrono::milliseconds kLastWords{300}, kLastWordsOfFiles{1000};

// The same random name on all ranks of `comm`.
std::string common_name(MPI_Comm comm) {
  std::random_device random;
  uint64_t id = static_cast<uint64_t>(random()) << 32 | random();
  check_mpi(MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm));
  return fmt::format("kintsugi_{:016x}", id);
}

// The count that follows `key` at the beginning of a line.
Came has_come(const std::string& text, const std::string& key, uint64_t number) {
  if (text.empty()) return Came::unknown;
  const size_t at = ("\n" + text).find("\n" + key);
  if (at == std::string::npos) return Came::no;
  return std::strtoull(text.c_str() + at + key.size(), nullptr, 10) > number ? Came::yes : Came::no;
}

}  // namespace

MpiProcess::MpiProcess(const WorldOptions& options)
    : time_limit(options.time_limit), folder_(options.folder), exceptions_(std::uncaught_exceptions()) {
  int is_there = 0, level = 0;
  check_mpi(MPI_Initialized(&is_there));
  base::require(is_there == 0, "comm", "a second MPI world in one process");
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));  // inherited by communicators made of it
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &meeting));

  MPI_Comm node = MPI_COMM_NULL;
  if (options.share_memory) {
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
  } else {
    check_mpi(MPI_Comm_dup(MPI_COMM_SELF, &node));
  }
  int seat = 0, seats = 0;
  check_mpi(MPI_Comm_rank(node, &seat));
  check_mpi(MPI_Comm_size(node, &seats));
  name_ = common_name(MPI_COMM_WORLD);
  const std::string path = "/dev/shm/" + common_name(node);
  if (seat == 0) board = std::make_unique<Board>(path, true, seats, size);
  check_mpi(MPI_Barrier(node));
  if (seat != 0) board = std::make_unique<Board>(path, false, seats, size);
  check_mpi(MPI_Barrier(node));
  if (seat == 0) unlink(path.c_str());  // it lives until the last rank ends, however that ends

  std::vector<int> here(seats);
  check_mpi(MPI_Allgather(&rank, 1, MPI_INT, here.data(), 1, MPI_INT, node));
  seats_.assign(size, -1);
  for (int s = 0; s < seats; ++s) seats_[here[s]] = s;
  check_mpi(MPI_Comm_free(&node));
  if (seats == size) folder_.clear();
  far_.resize(size);
}

MpiProcess::~MpiProcess() {
  if (failed || board->ended() || std::uncaught_exceptions() > exceptions_) abort("it left the run early");
  MPI_Comm_free(&meeting);
  MPI_Finalize();
}

void MpiProcess::abort(const std::string& why) {
  board->end(fmt::format("rank {} ended: {}", rank, why), false);
  std::fflush(nullptr);
  std::this_thread::sleep_for(folder_.empty() ? kLastWords : kLastWordsOfFiles);
  for (int r = 0; r < size && !folder_.empty(); ++r) unlink(file(r).c_str());  // those of all: nobody goes on
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

void MpiProcess::throw_end(const Late& own) {
  if (board->out_of_time() && own.absent) throw_late(own);
  throw Timeout(board->why(), {}, {});
}

std::string MpiProcess::file(int world_rank) const {
  return fmt::format("{}/{}_rank_{}", folder_, name_, world_rank);
}

// A file appears whole. Whoever is late at about the same time has written it within the wait.
void MpiProcess::ask_far_ranks(const std::vector<int>& world_ranks) {
  if (folder_.empty()) return;
  const std::string half = file(rank) + ".new";
  std::ofstream(half) << board->text(seat()) << "end\n";
  std::rename(half.c_str(), file(rank).c_str());
  const auto end = std::chrono::steady_clock::now() + kLastWordsOfFiles / 2;
  for (bool all = false; !all && std::chrono::steady_clock::now() < end;) {
    all = true;
    for (const int r : world_ranks) {
      if (seat(r) >= 0 || !far_[r].empty()) continue;
      std::ifstream in(file(r));
      far_[r].assign(std::istreambuf_iterator<char>(in), {});
      all &= !far_[r].empty();
    }
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Came MpiProcess::far_collective(int world_rank, int row, uint64_t number) const {
  return has_come(far_[world_rank], fmt::format("collectives {} ", row), number);
}

Came MpiProcess::far_message(int world_rank, int row, int member, bool send, uint64_t number) const {
  return has_come(far_[world_rank], fmt::format("messages {} {} {} ", row, member, send ? 1 : 0), number);
}

void Patience::idle() {
  const auto waited = Clock::now() - begin_;
  if (waited < std::chrono::microseconds(50)) return;
  if (waited < std::chrono::milliseconds(2)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace kintsugi::comm
