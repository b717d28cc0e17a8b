// What the tokenizer.json files of our own kinds (bytes, chars) have in common:
// { "format": "kintsugi-tokenizer", "version": 1, "kind": ..., and what the kind needs }.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

constexpr std::string_view kOwnFormat = "kintsugi-tokenizer";
constexpr int32_t kOwnVersion = 1;

// How the id that ends a text decodes, as in GPT-2; the ids of this text are not that id.
constexpr std::string_view kOwnEndOfText = "<|endoftext|>";

nlohmann::ordered_json begin_own_json(std::string_view kind);

// UserError unless `document` has the format and version, exactly the keys of `more` besides, or the number.
void check_keys(const nlohmann::json& document, const std::vector<std::string>& more, std::string_view where);
void check_number(const nlohmann::json& document, const std::string& key, int32_t number, std::string_view where);

}  // namespace kintsugi::text
