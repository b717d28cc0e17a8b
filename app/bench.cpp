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
  const Verb verb = kintsugi.add_verb("bench", "Measures this machine and describes it for plan --cluster");
  const auto o = std::make_shared<BenchOptions>();
  const auto subject = std::make_shared<std::string>();
  verb.word("what", *subject, subjects(),
            "machine: compute and memory rates per core count; collectives: between ranks, by size; products: the "
            "kernels of a run")
      .required();
  verb.text("run.toml", o->run.path, "products only: the run whose kernels are measured");
  verb.any_texts("--set", o->run.sets, "Override keys of the run's file, e.g. --set train.micro_batch=4")
      .type_name("SECTION.KEY=VALUE");
  verb.integer("--ranks", o->ranks, {1, 1024},
               "Ranks that compute at the same time; default: one per core, or the run's")
      .type_name("N");
  verb.integer("--threads", o->threads, {1, 1024}, "machine only: threads per rank").show_default();
  verb.word("--transport", o->transport, words_of("parallel.transport"), "collectives only: [parallel] transport")
      .show_default();
  verb.any_texts("--sizes", o->sizes, "collectives only: message sizes, e.g. 1KiB 64KiB 1MiB").type_name("SIZE");
  verb.integer("--steps", o->steps, {1, 1000}, "products only: number of measured steps").show_default();
  verb.text("--into", o->into, "The cluster file, made by `bench machine`, that receives the measurements")
      .type_name("FILE");
  // `--set a=b run.toml`: --set takes all following arguments; the one without "=" is the file.
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
