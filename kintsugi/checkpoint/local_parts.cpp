#include "kintsugi/checkpoint/local_parts.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/where.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/texts_of_all.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kContentsFile = "contents.json";  // in a temporary folder, from the holder of part 0

std::string prefix_of(const fs::path& run_folder) {
  const std::string run = (fs::absolute(run_folder) / "").lexically_normal().parent_path().string();
  return fmt::format("kintsugi_{}_", checksum_text(checksum_of(run)));
}

LocalPart part_from(const fs::path& description) {
  const auto json = base::Json::parse(kWhere, description.string(), base::read_file(description));
  LocalPart part;
  part.file = fs::path(description).replace_extension(".safetensors");
  part.step = json.at("step").whole();
  part.ranks = static_cast<int>(json.at("ranks").whole(1, 1 << 30));
  part.rank = static_cast<int>(json.at("rank").whole(0, part.ranks - 1));
  part.bytes = static_cast<uint64_t>(json.at("bytes").whole());
  part.list = json.at("list").text();
  if (const auto state = json.find("state"))
    part.contents = Contents{.state = std::string(state->text()),
                             .config = std::string(json.at("config").text()),
                             .tokenizer = std::string(json.at("tokenizer").text())};
  return part;
}

// Of the newest step above `least` of which every part is somewhere: for each part the first rank that has it.
std::optional<std::pair<int64_t, std::vector<int>>> newest_complete(const std::vector<std::string>& texts,
                                                                    int64_t least) {
  std::map<std::pair<int64_t, int>, std::vector<int>, std::greater<>> holders;  // by step and number of ranks
  for (size_t holder = 0; holder < texts.size(); ++holder) {
    std::istringstream in(texts[holder]);
    int64_t step = 0;
    for (int ranks = 0, rank = 0; in >> step >> ranks >> rank;) {
      if (step <= least) continue;
      auto& of_step = holders.try_emplace({step, ranks}, static_cast<size_t>(ranks), -1).first->second;
      int& first = of_step[static_cast<size_t>(rank)];
      if (first < 0) first = static_cast<int>(holder);
    }
  }
  for (const auto& [step, of_step] : holders)
    if (std::ranges::all_of(of_step, [](int holder) { return holder >= 0; })) return std::pair(step.first, of_step);
  return std::nullopt;
}

}  // namespace

fs::path local_file(const fs::path& local, const fs::path& run_folder, int rank, LocalKind kind) {
  return local / fmt::format("{}{}_{:05}.safetensors", prefix_of(run_folder),
                             kind == LocalKind::staged ? "rank" : "copy", rank);
}

fs::path description_file(const fs::path& file) {
  return fs::path(file).replace_extension(".json");
}

std::string describe(const LocalPart& part) {
  base::JsonWriter json;
  json.object([&] {
    json.key("step").value(part.step).key("rank").value(int64_t{part.rank}).key("ranks").value(int64_t{part.ranks});
    json.key("bytes").value(static_cast<int64_t>(part.bytes)).key("list").value(part.list);
    if (part.contents) {
      json.key("state").value(part.contents->state).key("config").value(part.contents->config);
      json.key("tokenizer").value(part.contents->tokenizer);
    }
  });
  return json.text() + "\n";
}

void write_description(const fs::path& file, const std::string& description) {
  const fs::path path = description_file(file), written = fs::path(path) += ".part";
  base::FileWriter out(written);
  out.write(description);
  out.close_unsynced();
  std::error_code error;
  fs::rename(written, path, error);
  if (error) throw base::UserError(kWhere, "cannot rename {}: {}", base::in_quotes(written.string()), error.message());
}

std::vector<LocalPart> local_parts(const fs::path& local, const fs::path& run_folder) {
  const std::string prefix = prefix_of(run_folder);
  std::vector<LocalPart> parts;
  std::error_code error;
  for (fs::directory_iterator i(local, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!name.starts_with(prefix) || i->path().extension() != ".json") continue;
    try {
      LocalPart part = part_from(i->path());
      std::error_code missing;
      if (fs::file_size(part.file, missing) == part.bytes && !missing) parts.push_back(std::move(part));
    } catch (const base::UserError&) {  // damaged: as if it were not there
    }
  }
  return parts;
}

void remove_part(const fs::path& file) noexcept {
  base::remove_if_possible(description_file(file));
  base::remove_if_possible(file);
}

std::optional<int64_t> recover_local_parts(const fs::path& run_folder, const fs::path& local, comm::Communicator& all) {
  const std::vector<LocalPart> mine = local_parts(local, run_folder);
  const std::vector<SavedStep> saved = all.rank() == 0 ? list(run_folder) : std::vector<SavedStep>();
  int64_t newest = comm::of_rank_0(all, saved.empty() ? -1 : saved.back().step);
  std::string text;
  for (const LocalPart& part : mine) text += fmt::format("{} {} {}\n", part.step, part.ranks, part.rank);
  const auto found = newest_complete(comm::texts_of_all(all, text), newest);
  std::optional<int64_t> recovered;
  if (found) {
    const auto& [step, holders] = *found;
    const fs::path folder = part_folder(run_folder, step);
    std::optional<CheckpointWriter> writer;
    auto failure = comm::failure_of(all, [&, step = step, ranks = static_cast<int>(holders.size())] {
      if (all.rank() == 0) writer.emplace(run_folder, step, 0, ranks);
    });
    if (!failure)
      failure = comm::failure_of(all, [&, step = step, &holders = holders] {
        std::vector<bool> copied(holders.size());  // a node may hold a part and a copy of it
        for (const LocalPart& part : mine) {
          const auto r = static_cast<size_t>(part.rank);
          if (part.step != step || part.ranks != std::ssize(holders) || holders[r] != all.rank() || copied[r]) continue;
          copied[r] = true;
          copy_part(part.file, folder, part.rank, part.list);
          if (part.contents) base::write_file_atomically(folder / kContentsFile, describe(part));
        }
      });
    if (!failure)
      failure = comm::failure_of(all, [&] {
        if (all.rank() != 0) return;
        const std::optional<Contents> contents = part_from(folder / kContentsFile).contents;
        base::require(contents.has_value(), kWhere, "no contents of a local checkpoint");
        fs::remove(folder / kContentsFile);
        writer->finish(*contents);
      });
    if (!failure) recovered = newest = step;
    if (failure && all.rank() == 0) spdlog::warn("step {} on the nodes' own disks is not used: {}", step, *failure);
  }
  for (const LocalPart& part : mine)
    if (part.step <= newest) remove_part(part.file);
  return recovered;
}

}  // namespace kintsugi::checkpoint
