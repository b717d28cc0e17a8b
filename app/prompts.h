// The prompts of `kintsugi generate`: texts to continue, or chat messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/verb.h"
#include "kintsugi/evaluate/checkpoint_model.h"

namespace kintsugi::app {

struct PromptOptions {
  std::vector<std::string> given;  // on the command line
  std::string file, lines_file;    // one prompt; one on each line
  std::string chat, system;        // the format of a chat; empty: the prompt is plain text
};

// The options live until the verb has run.
void add_prompt_options(const Verb& verb, PromptOptions& options);

// UserError for options that cannot be combined, before anything is opened.
void check_prompt_options(const PromptOptions& options);

struct Prompt {
  std::string given;         // as the user wrote it
  std::string text;          // in the format of the chat
  std::vector<int32_t> ids;  // not empty
  size_t ids_of_text = 0;    // the last so many

  std::span<const int32_t> text_ids() const { return std::span(ids).last(ids_of_text); }
};

// At least one. UserError if the model cannot continue it.
std::vector<Prompt> read_prompts(const PromptOptions& options, const evaluate::CheckpointModel& model);

}  // namespace kintsugi::app
