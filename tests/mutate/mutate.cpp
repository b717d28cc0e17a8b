// Reads damaged files of every format that is read. Each must be accepted, or refused by a UserError of one line;
// anything else is a finding: it is printed with format and seed, and the exit code is 1.
//
//   mutate                                   2,000 mutations of each format
//   mutate --format bpe --format jsonl       of these alone; --list names all
//   mutate --seed 7 --count 1 --format bpe   the mutation with seed 7, as it is within any longer run
//   mutate ... --keep FOLDER                 leaves the files of the last mutation there
//
// One in --through (100) mutations is read by the command itself, whose exit code must be 0, or 1 with one line
// `error: ...`. A long run finds more with sanitizers:
//
//   cmake -B build-sanitize -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -Wno-maybe-uninitialized"
//   ninja -C build-sanitize mutate kintsugi
//   UBSAN_OPTIONS=halt_on_error=1 nice build-sanitize/tests/mutate/mutate --count 100000
//
// A new format is a row in formats.cpp.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "tests/mutate/formats.h"
#include "tests/mutate/supervise.h"
#include "tests/process.h"

namespace kintsugi::tests {
namespace {

constexpr size_t kLongestLine = 1010;  // of an error

struct Options {
  std::vector<std::string> formats;
  uint64_t seed = 1, count = 2000, through = 100;
  std::string keep;
};

using Files = std::map<std::string, std::string>;  // by path

Files read_all(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = base::read_file(entry.path());
  return files;
}

void write_bytes(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

void write_all(const fs::path& folder, const Files& files) {
  fs::remove_all(folder);
  for (const auto& [path, content] : files) {
    fs::create_directories((folder / path).parent_path());
    write_bytes(folder / path, content);
  }
}

// Why an error is not acceptable; "" if it is.
std::string bad_line(std::string_view text) {
  if (text.find('\n') != text.npos) return fmt::format("an error of several lines: {}", text);
  if (text.size() > kLongestLine) return fmt::format("an error of {} bytes: {}", text.size(), text);
  return "";
}

// Two samples of a format in separate folders, and their mutations.
class Mutator {
 public:
  Mutator(const Format& format, const fs::path& folder) : format_(format) {
    for (int i = 0; i < 2; ++i) {
      folders_[i] = folder / std::to_string(i);
      fs::create_directories(folders_[i]);
      fs::current_path(folders_[i]);
      format.make(i);
      format.read();  // as it is, it is accepted
      samples_[i] = read_all(folders_[i]);
    }
  }

  Verdict run(uint64_t seed, const Options& options) {
    Random random(seed ^ XXH3_64bits(format_.name.data(), format_.name.size()));
    const size_t sample = random.below(2);
    fs::current_path(folders_[sample]);
    const Files& files = samples_[sample];
    const MutatedFile& file = format_.files[random.below(format_.files.size())];
    const std::string path(file.path);
    std::vector<std::string> others;
    for (const MutatedFile& other : format_.files) others.push_back(samples_[1 - sample].at(std::string(other.path)));
    write_bytes(path, mutate(files.at(path), file.content, others, random));
    if (format_.fix_checksums && !random.one_in(4)) format_.fix_checksums();
    const bool through = options.through > 0 && random.one_in(options.through);
    const Verdict verdict =
        through ? read_by_command(format_.commands[random.below(format_.commands.size())]) : read_here();
    if (!options.keep.empty()) {
      fs::copy(".", options.keep, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    if (through)
      write_all(folders_[sample], files);
    else
      for (const auto& [name, content] : files)
        if (may_change(name)) write_bytes(name, content);
    return verdict;
  }

 private:
  // By a mutation, or by the update of checksums in the same folder.
  bool may_change(const std::string& path) const {
    return std::any_of(format_.files.begin(), format_.files.end(), [&](const MutatedFile& file) {
      return file.path == path ||
             (format_.fix_checksums && fs::path(file.path).parent_path() == fs::path(path).parent_path());
    });
  }

  Verdict read_here() const {
    try {
      format_.read();
      return {.outcome = Outcome::accepted};
    } catch (const base::UserError& error) {
      const std::string bad = bad_line(error.what());
      if (bad.empty()) return {.outcome = Outcome::refused};
      return {.outcome = Outcome::finding, .what = bad};
    } catch (const std::exception& error) {
      return {.outcome = Outcome::finding, .what = fmt::format("{}: {}", typeid(error).name(), error.what())};
    }
  }

  Verdict read_by_command(std::string_view arguments) const {
    const Ended ended = run_kintsugi(fs::current_path(), std::string(arguments), "ulimit -t 10");
    Verdict verdict = {.outcome = Outcome::accepted, .by_command = true};
    std::string errors;
    size_t count = 0;
    for (size_t begin = 0, end; (end = ended.err.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (const std::string line = ended.err.substr(begin, end - begin); line.starts_with("error: ")) {
        errors = line;
        ++count;
      }
    if (ended.code == 0 && count == 0) return verdict;
    verdict.outcome = Outcome::refused;
    verdict.what = bad_line(errors);
    if (ended.code == 1 && count == 1 && verdict.what.empty()) return verdict;
    verdict.outcome = Outcome::finding;
    verdict.what = fmt::format("kintsugi {}: exit code {}, signal {}, {} lines of errors: {}", arguments, ended.code,
                               ended.signal, count, ended.err.substr(0, 2000));
    return verdict;
  }

  const Format& format_;
  fs::path folders_[2];
  Files samples_[2];
};

int run(const Options& options) {
  bool found = false;
  const TemporaryFolder folder;
  for (const Format& format : formats()) {
    const bool chosen = options.formats.empty() ||
                        std::find(options.formats.begin(), options.formats.end(), format.name) != options.formats.end();
    if (!chosen) continue;
    int started = 0;
    const Counts counts = supervise(
        options.seed, options.count,
        [&]() -> Judge {
          const fs::path place = folder / fmt::format("{}-{}", format.name, started);
          return [&, mutator = std::make_shared<Mutator>(format, place)](uint64_t seed) {
            return mutator->run(seed, options);
          };
        },
        [&](uint64_t seed, std::string_view what) {
          ++started;
          fmt::print("{} --seed {}: {}\n", format.name, seed, what);
          std::fflush(stdout);
        });
    fmt::print("{:<24} {:>7} accepted  {:>7} refused  {:>6} of them through the command  {:>4} findings\n", format.name,
               counts.accepted, counts.refused, counts.by_command, counts.findings);
    std::fflush(stdout);
    fs::current_path("/");
    for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove_all(entry.path());
    found = found || counts.findings > 0;
  }
  return found ? 1 : 0;
}

}  // namespace
}  // namespace kintsugi::tests

int main(int argc, char** argv) {
  using namespace kintsugi::tests;
  spdlog::set_level(spdlog::level::off);
  Options options;
  bool list = false;
  CLI::App app("Reads damaged files of every format that is read");
  app.add_option("--format", options.formats, "All if not given");
  app.add_option("--seed", options.seed, "Of the first mutation")->capture_default_str();
  app.add_option("--count", options.count, "Mutations of each format")->capture_default_str();
  app.add_option("--through", options.through, "One in so many is read by the command; 0: none")->capture_default_str();
  app.add_option("--keep", options.keep, "A folder for the files of the last mutation");
  app.add_flag("--list", list, "Names the formats");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const Format& format : formats()) std::cout << format.name << "\n";
    return 0;
  }
  for (const std::string& name : options.formats)
    if (std::none_of(formats().begin(), formats().end(), [&](const Format& f) { return f.name == name; })) {
      std::cerr << "there is no format " << name << "; see --list\n";
      return 1;
    }
  // Saving syncs files, which is free here.
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  if (!options.keep.empty()) options.keep = std::filesystem::absolute(options.keep);
  return run(options);
}
