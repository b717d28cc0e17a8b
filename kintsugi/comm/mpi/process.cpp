#include "kintsugi/comm/mpi/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <random>
#include <thread>

#include "kintsugi/comm/mpi/check.h"

namespace kintsugi::comm {
namespace {

// For the others to print a line each.
constexpr std::chrono::milliseconds kLastWords{500};

// The same random name on all ranks of a node.
std::string board_path(MPI_Comm node) {
  std::random_device random;
  uint64_t id = static_cast<uint64_t>(random()) << 32 | random();
  check_mpi(MPI_Bcast(&id, 1, MPI_UINT64_T, 0, node));
  return fmt::format("/dev/shm/kintsugi_{:016x}", id);
}

}  // namespace

MpiProcess::MpiProcess(const WorldOptions& options)
    : time_limit(options.time_limit), exceptions_(std::uncaught_exceptions()) {
  int is_there = 0, level = 0;
  check_mpi(MPI_Initialized(&is_there));
  base::require(is_there == 0, "comm", "a second MPI world in one process");
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));  // inherited by communicators made of it
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &meeting));

  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
  int seat = 0, seats = 0;
  check_mpi(MPI_Comm_rank(node, &seat));
  check_mpi(MPI_Comm_size(node, &seats));
  const std::string path = board_path(node);
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
}

MpiProcess::~MpiProcess() {
  if (failed || board->ended() || std::uncaught_exceptions() > exceptions_) abort("it left the run early");
  MPI_Comm_free(&meeting);
  MPI_Finalize();
}

void MpiProcess::abort(const std::string& why) {
  board->end(fmt::format("rank {} ended: {}", rank, why), false);
  std::fflush(nullptr);
  std::this_thread::sleep_for(kLastWords);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

void MpiProcess::throw_end(const Late& own) {
  if (!board->ended() || (board->out_of_time() && !own.missing.empty())) throw_late(own);
  throw Timeout(board->why(), {}, {});
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
