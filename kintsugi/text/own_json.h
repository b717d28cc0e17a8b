// The common part of the tokenizer.json files of our own kinds (bytes, chars): { "format": "kintsugi-tokenizer",
// "version": 1, "kind": ..., and the keys of the kind }.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

constexpr std::string_view kOwnFormat = "kintsugi-tokenizer";
constexpr int32_t kOwnVersion = 1;

// The text that the end-of-text id decodes to, as in GPT-2; encoding this text does not give that id.
constexpr std::string_view kOwnEndOfText = "<|endoftext|>";

nlohmann::ordered_json begin_own_json(std::string_view kind);

// UserError unless `document` has the format and version, exactly the keys of `more` besides, or the number.
void check_keys(const nlohmann::json& document, const std::vector<std::string>& more, std::string_view where);
void check_number(const nlohmann::json& document, const std::string& key, int32_t number, std::string_view where);

}  // namespace kintsugi::text
