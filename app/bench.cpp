#include "app/bench.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/config/allowed.h"

namespace kintsugi::app {
namespace {

struct Subject {
  std::string_view name;
  void (*run)(const BenchOptions&);
};

constexpr std::array<Subject, 3> kSubjects = {
    {{"machine", bench_machine}, {"collectives", bench_collectives}, {"products", bench_products}}};

config::OneOf subjects() {
  config::OneOf words;
  for (const Subject& s : kSubjects) words.words.emplace_back(s.name);
  return words;
}

}  // namespace

void add_bench(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("bench", "Measures this machine, and describes it for plan --cluster");
  const auto o = std::make_shared<BenchOptions>();
  const auto subject = std::make_shared<std::string>();
  verb.word("what", *subject, subjects(),
            "machine: arithmetic and memory by cores; collectives: between ranks, by size; products: the kernels of a "
            "run")
      .required();
  verb.text("run.toml", o->run.path, "The run whose kernels are measured, of products alone");
  verb.any_texts("--set", o->run.sets, "Values over those of the run's file, as --set train.micro_batch=4")
      .type_name("SECTION.KEY=VALUE");
  verb.integer("--ranks", o->ranks, {1, 1024}, "Ranks that compute at once; by default one for each core, or the run's")
      .type_name("N");
  verb.integer("--threads", o->threads, {1, 1024}, "Threads of a rank, of machine").show_default();
  verb.word("--transport", o->transport, words_of("parallel.transport"), "Of collectives: [parallel] transport")
      .show_default();
  verb.any_texts("--sizes", o->sizes, "Of collectives: bytes of a value, as 1KiB 64KiB 1MiB").type_name("SIZE");
  verb.integer("--steps", o->steps, {1, 1000}, "Of products: steps that are measured").show_default();
  verb.text("--into", o->into, "The cluster file that takes what was measured, which machine makes").type_name("FILE");
  // `--set a=b run.toml`: --set takes all arguments that follow, and the file is the one without "=".
  verb.when_read([o] {
    const auto file =
        std::ranges::find_if(o->run.sets, [](const auto& set) { return set.find('=') == std::string::npos; });
    if (!o->run.path.empty() || file == o->run.sets.end()) return;
    o->run.path = *file;
    o->run.sets.erase(file);
  });
  verb.run([o, subject] {
    for (const Subject& s : kSubjects)
      if (s.name == *subject) return s.run(*o);
  });
}

}  // namespace kintsugi::app
