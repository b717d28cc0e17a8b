#include "kintsugi/data/prompts.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::data {

Prompts::Prompts(const std::filesystem::path& path, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat)
    : path_(path) {
  fingerprint_ = for_each_line(path, chat.name, [&](const base::Json& line, const LinePlace& place) {
    const auto asked = first_of(line, {"prompt", "messages", "question", "instruction"}),
               answer = first_of(line, {"answer", "solution", "output"});
    if (!asked || !answer) line.fail("a prompt has \"prompt\" and \"answer\"");
    const std::vector<Turn> turns =
        asked->is_list() ? turns_of_list(*asked) : std::vector<Turn>{{text::Role::user, std::string(asked->text())}};
    Prompt prompt = {.ids = prompt_ids(tokenizer, chat, turns, place),
                     .text = turns.empty() ? "" : turns.back().content,
                     .answer = answer->is_number() ? answer->shown() : std::string(answer->text()),
                     .line = place.number};
    largest_ = std::max<int64_t>(largest_, *std::ranges::max_element(prompt.ids));
    list_.push_back(std::move(prompt));
  });
  if (list_.empty()) throw base::UserError("data", "{} holds no prompts", base::in_quotes(path.string()));
}

}  // namespace kintsugi::data
