// The rule for files that a verb may write its results to.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "kintsugi/base/write_output.h"

namespace kintsugi::app {

// UserError "[where] ..." unless each output may be written. An output must not be one of `inputs` or another output.
// An existing file is not replaced if it belongs to a run, corpus, checkpoint, Hugging Face folder or tokenizer, or is
// a configuration or cluster file, unless the option writes that kind (a page over a page). A new file is not created
// in a checkpoint, nor in another such folder under a name that its readers look for.
void require_outputs(std::string_view where, std::span<const base::Output> outputs,
                     std::span<const std::filesystem::path> inputs = {});

}  // namespace kintsugi::app
