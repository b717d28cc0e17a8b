// Access to states between steps: in memory, or on a device or in the file of the rank, in blocks of a few MiB. Throws
// UserError if the file cannot be read or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "kintsugi/program/state_runs.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::run {

// The bytes from `begin` on of a state's buffer.
void read_state(const Executor& executor, program::BufferId state, int64_t begin, std::span<std::byte> to);
void write_state(Executor& executor, program::BufferId state, int64_t begin, std::span<const std::byte> from);

// Calls f with the bytes of a state's buffer, or with one block after another, and stores its changes. Buffers of equal
// size have equal blocks.
void look_at_blocks(const Executor& executor, program::BufferId state,
                    const std::function<void(std::span<const std::byte>)>& f);
void change_blocks(Executor& executor, program::BufferId state, const std::function<void(std::span<std::byte>)>& f);

// Calls f for the elements of a state that the rank holds (program::for_each_run), in runs or pieces of them, with
// `data` the first element.
void look_at_runs(const Executor& executor, const program::StateInfo& state,
                  const std::function<void(const program::Run&, const std::byte* data)>& f);
void change_runs(Executor& executor, const program::StateInfo& state,
                 const std::function<void(const program::Run&, std::byte* data)>& f);

}  // namespace kintsugi::run
