#include "kintsugi/text/declared_tokens.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/text/json_part.h"

namespace kintsugi::text {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr std::string_view kMember = "\"kintsugi\":{";  // as written, without nested objects

std::string written(const DeclaredTokens& declared) {
  base::JsonWriter out;
  const auto ids = [&](std::string_view key, const std::vector<int32_t>& list) {
    out.key(key).list([&] {
      for (const int32_t id : list) out.value(id);
    });
  };
  out.object([&] {
    if (declared.end) out.key("end").value(*declared.end);
    if (declared.begin) out.key("begin").value(*declared.begin);
    if (!declared.stops.empty()) ids("stops", declared.stops);
    if (declared.around) {
      ids("before", declared.around->before);
      ids("after", declared.around->after);
    }
  });
  return out.text();
}

struct ValuePlace {
  size_t begin = 0, end = 0;
};

// The value of a member of the object in the text; nothing if there is none.
std::optional<ValuePlace> find_value(std::string_view json, std::string_view member) {
  int depth = 0;
  std::optional<size_t> begin;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (begin && depth == 1 && (c == ',' || c == '}')) return ValuePlace{*begin, at};
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t text = at + 1;
    for (++at; at < json.size() && json[at] != '"'; ++at) at += json[at] == '\\';
    if (begin || depth != 1 || json.substr(text, at - text) != member) continue;
    const size_t colon = json.find_first_not_of(" \t\r\n", at + 1);
    if (colon == json.npos || json[colon] != ':') continue;  // a value
    begin = json.find_first_not_of(" \t\r\n", colon + 1);
    if (*begin == json.npos) return std::nullopt;
    at = *begin - 1;
  }
  return std::nullopt;
}

// Where the members of "model" begin; npos if there is no such object.
size_t members_of_model(std::string_view json) {
  const auto model = find_value(json, "model");
  return model && json[model->begin] == '{' ? model->begin + 1 : json.npos;
}

class DeclaredTokenizer final : public Tokenizer {
 public:
  DeclaredTokenizer(std::unique_ptr<Tokenizer> tokenizer, DeclaredTokens declared)
      : tokenizer_(std::move(tokenizer)), declared_(std::move(declared)) {}

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override { tokenizer_->encode(text, ids); }
  void encode_continued(std::string_view text, std::vector<int32_t>& ids) const override {
    tokenizer_->encode_continued(text, ids);
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_->decode(ids); }
  int32_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::optional<int32_t> end_of_text() const override {
    return declared_.end ? declared_.end : tokenizer_->end_of_text();
  }
  std::optional<int32_t> begin_of_document() const override {
    return declared_.begin ? declared_.begin : tokenizer_->begin_of_document();
  }
  std::vector<int32_t> stops() const override { return declared_.stops.empty() ? Tokenizer::stops() : declared_.stops; }
  SpecialTokens special_tokens() const override {
    return declared_.around ? *declared_.around : tokenizer_->special_tokens();
  }
  std::optional<int32_t> control_token(std::string_view text) const override { return tokenizer_->control_token(text); }
  std::optional<std::string> control_text(int32_t id) const override { return tokenizer_->control_text(id); }
  std::string kind() const override { return tokenizer_->kind(); }
  std::string to_json() const override {
    std::string json = without_declared(tokenizer_->to_json());
    const size_t at = members_of_model(json);
    if (at == json.npos) return json;
    return json.insert(at, "\"kintsugi\":" + written(declared_) + ",");
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  DeclaredTokens declared_;
};

std::vector<int32_t> ids_in(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.list()) ids.push_back(static_cast<int32_t>(id.whole(0, INT32_MAX)));
  return ids;
}

std::optional<Json> read_beside(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  return Json::parse("tokenizer", file.string(), base::read_file(file));
}

// "eos_token": "</s>", or { "content": "</s>", ... }.
std::optional<int32_t> token_named(const std::optional<Json>& file, std::string_view key, const Tokenizer& tokenizer) {
  if (!file || !file->is_object()) return std::nullopt;
  const auto token = find_part(*file, key);
  if (!token) return std::nullopt;
  const auto content = token->is_object() ? token->find("content") : token;
  return content && content->is_text() ? find_token(tokenizer, content->text()) : std::nullopt;
}

// "eos_token_id": 2, or [2, 32000].
std::vector<int32_t> ids_named(const std::optional<Json>& file, std::string_view key, const Tokenizer& tokenizer) {
  if (!file || !file->is_object()) return {};
  const auto value = find_part(*file, key);
  if (!value) return {};
  std::vector<int32_t> ids =
      value->is_list() ? ids_in(*value) : std::vector{static_cast<int32_t>(value->whole(0, INT32_MAX))};
  std::erase_if(ids, [&](int32_t id) { return id >= tokenizer.vocab_size(); });
  return ids;
}

bool is_true(const std::optional<Json>& file, std::string_view key) {
  return file && file->is_object() && flag(*file, key, false);
}

bool is_said(const std::optional<Json>& file, std::string_view key) {
  return file && file->is_object() && find_part(*file, key).has_value();
}

}  // namespace

std::optional<int32_t> find_token(const Tokenizer& tokenizer, std::string_view spelled) {
  const std::vector<int32_t> ids = tokenizer.encode(spelled);
  if (ids.size() == 1 && tokenizer.decode(ids) == spelled) return ids[0];
  return std::nullopt;
}

std::unique_ptr<Tokenizer> with_declared(std::unique_ptr<Tokenizer> tokenizer, DeclaredTokens declared) {
  if (declared.empty()) return tokenizer;
  return std::make_unique<DeclaredTokenizer>(std::move(tokenizer), std::move(declared));
}

std::unique_ptr<Tokenizer> with_begin_of_texts(std::unique_ptr<Tokenizer> tokenizer, int64_t begin) {
  if (begin < 0 || begin >= tokenizer->vocab_size()) return tokenizer;
  DeclaredTokens declared;
  declared.begin = static_cast<int32_t>(begin);
  declared.stops = tokenizer->stops();
  declared.around = tokenizer->special_tokens();
  declared.around->before = {static_cast<int32_t>(begin)};
  return std::make_unique<DeclaredTokenizer>(std::move(tokenizer), std::move(declared));
}

DeclaredTokens declared_in(const Json& document) {
  DeclaredTokens declared;
  const auto part = document.at("model").find("kintsugi");
  if (!part) return declared;
  const auto id = [&](std::string_view key) -> std::optional<int32_t> {
    const auto value = part->find(key);
    return value ? std::optional(static_cast<int32_t>(value->whole(0, INT32_MAX))) : std::nullopt;
  };
  declared.end = id("end");
  declared.begin = id("begin");
  if (const auto stops = part->find("stops")) declared.stops = ids_in(*stops);
  if (const auto before = part->find("before")) declared.around = {{ids_in(*before), ids_in(part->at("after"))}};
  return declared;
}

std::string without_declared(std::string_view json) {
  const size_t at = members_of_model(json);
  if (at == json.npos || !json.substr(at).starts_with(kMember)) return std::string(json);
  const size_t end = json.find("},", at);
  if (end == json.npos) return std::string(json);
  return std::string(json.substr(0, at)).append(json.substr(end + 2));
}

std::string with_begin(std::string_view json, std::optional<int32_t> begin, std::string_view spelled) {
  base::JsonWriter out;
  const auto token = [&] {
    out.object([&] { out.key("SpecialToken").object([&] { out.key("id").value(spelled).key("type_id").value(0); }); });
  };
  const auto sequence = [&](std::string_view name, int type) {
    out.object([&] { out.key("Sequence").object([&] { out.key("id").value(name).key("type_id").value(type); }); });
  };
  if (!begin) {
    out.null();
  } else {
    out.object([&] {
      out.key("type").value("TemplateProcessing");
      out.key("single").list([&] { token(), sequence("A", 0); });
      out.key("pair").list([&] { token(), sequence("A", 0), sequence("B", 1); });
      out.key("special_tokens").object([&] {
        out.key(spelled).object([&] {
          out.key("id").value(spelled);
          out.key("ids").list([&] { out.value(*begin); });
          out.key("tokens").list([&] { out.value(spelled); });
        });
      });
    });
  }
  std::string text(json);
  if (const auto place = find_value(json, "post_processor"))
    return text.replace(place->begin, place->end - place->begin, out.text());
  return text.insert(text.find('{') + 1, "\"post_processor\":" + out.text() + ",");
}

DeclaredTokens declared_beside(const fs::path& folder, const Tokenizer& tokenizer, bool has_template) {
  const auto config = read_beside(folder / "tokenizer_config.json");
  const auto map = read_beside(folder / "special_tokens_map.json");
  const auto generation = read_beside(folder / "generation_config.json");
  const auto model = read_beside(folder / "config.json");
  DeclaredTokens declared;
  std::optional<int32_t> end = token_named(config, "eos_token", tokenizer);
  if (!end) end = token_named(map, "eos_token", tokenizer);
  std::vector<int32_t> stops = ids_named(generation, "eos_token_id", tokenizer);
  if (stops.empty()) stops = ids_named(model, "eos_token_id", tokenizer);
  if (!end && !stops.empty() && !tokenizer.end_of_text()) end = stops.front();
  if (end && end != tokenizer.end_of_text()) declared.end = end;
  if (!end) end = tokenizer.end_of_text();
  if (end && std::ranges::find(stops, *end) == stops.end()) stops.push_back(*end);
  if (stops.size() > 1) declared.stops = stops;
  std::optional<int32_t> begin = token_named(config, "bos_token", tokenizer);
  if (!begin) begin = token_named(map, "bos_token", tokenizer);
  if (has_template) return declared;
  const bool asks = is_said(config, "add_bos_token") || is_said(config, "add_eos_token");
  if (!asks) return declared;
  SpecialTokens around = tokenizer.special_tokens();
  if (is_said(config, "add_bos_token")) {
    if (!is_true(config, "add_bos_token"))
      around.before.clear();
    else if (begin)
      around.before = {*begin};
  }
  if (is_true(config, "add_eos_token") && end) around.after = {*end};
  declared.around = around;
  return declared;
}

}  // namespace kintsugi::text
