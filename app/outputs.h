// The one rule of which files a verb may write its results to.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "kintsugi/base/write_output.h"

namespace kintsugi::app {

// UserError "[where] ..." unless each output may be written. It may not be one of `inputs`, nor another output. And an
// existing file is not replaced if it belongs to a run, a corpus, a checkpoint, a Hugging Face folder or a tokenizer,
// or is a configuration or the description of a cluster, unless it is what the option writes (a page over a page). A
// file that does not exist may be made anywhere.
void require_outputs(std::string_view where, std::span<const base::Output> outputs,
                     std::span<const std::filesystem::path> inputs = {});

}  // namespace kintsugi::app
