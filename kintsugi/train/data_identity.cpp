#include "kintsugi/train/data_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::train {
namespace {

struct RoleName {
  DataRole role;
  const char* name;
};
constexpr std::array kRoles = {RoleName{DataRole::tokenizer, "tokenizer"}, RoleName{DataRole::train, "train"},
                               RoleName{DataRole::validation, "validation"}};

std::string name_of(DataRole role) {
  return std::find_if(kRoles.begin(), kRoles.end(), [&](const RoleName& r) { return r.role == role; })->name;
}

DataPart part_from(const base::Json& json) {
  const base::Json name = json.at("role");
  const auto role =
      std::find_if(kRoles.begin(), kRoles.end(), [&](const RoleName& r) { return name.text() == r.name; });
  if (role == kRoles.end()) name.refuse("tokenizer, train or validation");
  return {role->role, std::string(json.at("path").text()), std::string(json.at("fingerprint").text())};
}

// Paths need not be UTF-8, but JSON texts must be.
std::string as_utf8(const std::string& path) {
  return base::one_line(path, path.size() * 4 + 1);
}

std::vector<const DataPart*> with_role(const DataIdentity& data, DataRole role) {
  std::vector<const DataPart*> parts;
  for (const DataPart& part : data)
    if (part.role == role) parts.push_back(&part);
  return parts;
}

// What has changed, or "". Parts that the run did not have, or that are unknown, are not compared.
std::string change_of(const DataPart& began, const DataPart* now) {
  const std::string what = began.role == DataRole::tokenizer ? "the tokenizer " : "";
  if (!now) return fmt::format("{}\"{}\" of fingerprint {} is gone", what, began.path, began.fingerprint);
  if (now->fingerprint == began.fingerprint) return "";
  const std::string place = now->path == began.path ? "" : fmt::format(" of \"{}\"", began.path);
  return fmt::format("{}\"{}\" has the fingerprint {}, the run began with {}{}", what, now->path, now->fingerprint,
                     began.fingerprint, place);
}

}  // namespace

std::string to_lines(const DataIdentity& data) {
  std::string lines;
  for (const DataPart& part : data) lines += fmt::format("{}: fingerprint {}\n", part.path, part.fingerprint);
  return lines;
}

void write_data(const DataIdentity& data, base::JsonWriter& json) {
  json.list([&] {
    for (const DataPart& part : data)
      json.object([&] {
        json.key("role").value(name_of(part.role));
        json.key("path").value(as_utf8(part.path));
        json.key("fingerprint").value(part.fingerprint);
      });
  });
}

DataIdentity data_of(const checkpoint::CheckpointReader& reader) {
  const std::filesystem::path folder = reader.folder();
  const auto state = base::Json::parse("checkpoint", "the state in " + folder.string(), reader.state());
  if (const auto parts = state.find("data")) {
    DataIdentity data;
    for (const base::Json& part : parts->list()) data.push_back(part_from(part));
    return data;
  }
  const std::string tokenizer = reader.tokenizer();
  if (tokenizer.empty()) return {};
  return {{DataRole::tokenizer, (folder / "tokenizer.json").string(), data::tokenizer_fingerprint(tokenizer)}};
}

void require_same_data(const DataIdentity& began, const DataIdentity& now, const std::string& run_folder) {
  std::string changes;
  for (const RoleName& role : kRoles) {
    const auto before = with_role(began, role.role), after = with_role(now, role.role);
    for (size_t i = 0; i < before.size(); ++i) {
      const std::string change = change_of(*before[i], i < after.size() ? after[i] : nullptr);
      if (!change.empty()) changes += (changes.empty() ? "" : "; ") + change;
    }
  }
  if (changes.empty()) return;
  throw base::UserError("resume",
                        "the data have changed: {}; restore them, or start a new run in another train.folder, from "
                        "these weights with train.init_from={}",
                        changes, run_folder);
}

}  // namespace kintsugi::train
