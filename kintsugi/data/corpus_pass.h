// A parallel pass over a corpus, with a progress bar.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/data/corpus_reader.h"
#include "kintsugi/data/ordered_parallel.h"
#include "kintsugi/data/progress.h"

namespace kintsugi::data {

struct PassOptions {
  int threads = 1;
  std::FILE* progress = nullptr;            // null: prints nothing
  const std::atomic<bool>* stop = nullptr;  // set externally (by a signal): aborts the pass with a UserError
};

inline void throw_if_stopped(const PassOptions& options) {
  if (options.stop && options.stop->load()) {
    throw base::UserError("prepare", "interrupted; nothing was written, and the same command starts over");
  }
}

// Calls `work(Chunk&, thread) -> Result` on every chunk, and `consume(Result&&)` in corpus order on the caller's
// thread.
template <typename Result, typename Work, typename Consume>
void corpus_pass(const Corpus& corpus, const ReaderOptions& reader_options, const PassOptions& options,
                 const std::string& what, Work&& work, Consume&& consume) {
  using Counted = std::pair<uint64_t, Result>;
  CorpusReader reader(corpus, reader_options);
  Progress progress(options.progress, what, corpus.bytes);
  uint64_t done = 0;
  OrderedParallel<Chunk, Counted>::run(
      options.threads, [&](Chunk& chunk) { return reader.next(chunk); },
      [&](Chunk& chunk, int thread) { return Counted(chunk.text.size(), work(chunk, thread)); },
      [&](Counted&& result) {
        throw_if_stopped(options);
        consume(std::move(result.second));
        done += result.first;
        progress.show(done);
      },
      [&] {
        throw_if_stopped(options);
        progress.show(done);
      });
  progress.finish(done);
}

}  // namespace kintsugi::data
