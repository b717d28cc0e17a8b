#include "kintsugi/train/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/preference_samples.h"

namespace kintsugi::train {
namespace {

using Margins = std::vector<double>;

// Of training, then of each validation file.
std::vector<samples::PreferenceSamples*> sources_of(Corpus& corpus) {
  std::vector<samples::PreferenceSamples*> list = {dynamic_cast<samples::PreferenceSamples*>(corpus.train.get())};
  for (const ValidationSamples& v : corpus.validation)
    list.push_back(dynamic_cast<samples::PreferenceSamples*>(v.samples.get()));
  base::require(std::ranges::count(list, nullptr) == 0, "train", "preferences without pairs");
  return list;
}

// The first rank with the margins.
int rank_with_margins(const Rank& rank) {
  const int32_t mine = rank.executor->has_output(program::Step::score, models::kPairMargin) ? 1 : 0;
  std::vector<int32_t> every(static_cast<size_t>(rank.all->size()));
  rank.all->wait(rank.all->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto found = std::ranges::find(every, 1);
  base::require(found != every.end(), "train", "no rank has the margins");
  return static_cast<int>(found - every.begin());
}

Margins compute_margins(Rank& rank, const samples::PreferenceSamples& source, int from) {
  const auto count = static_cast<int64_t>(source.num_samples()), rows = compile::samples_of_pass(rank.settings());
  Margins margins(static_cast<size_t>(count));
  samples::BatchMemory batch(rows, source.parts());
  kernels::Numbers numbers;
  for (int64_t first = 0; first < count; first += rows) {
    source.fill_in_order(static_cast<uint64_t>(first), batch.view());
    rank.executor->run(program::Step::score, numbers,
                       [&](const run::Executor::Inputs& to) { evaluate::set_inputs(to, batch.view(), 0); });
    if (rank.world.rank() != from) continue;
    const std::span<double> made = rank.executor->output(program::Step::score, models::kPairMargin).as<double>();
    std::copy_n(made.begin(), std::min(rows, count - first), margins.begin() + first);
  }
  rank.all->wait(rank.all->broadcast(std::as_writable_bytes(std::span(margins)), from));
  return margins;
}

std::string to_json(const std::vector<Margins>& all) {
  base::JsonWriter out;
  out.object([&] {
    out.key("margins").list([&] {
      for (const Margins& margins : all)
        out.list([&] {
          for (const double margin : margins) out.value(margin);
        });
    });
  });
  return out.text() + "\n";
}

std::vector<Margins> read_margins(const std::filesystem::path& path,
                                  const std::vector<samples::PreferenceSamples*>& sources) {
  if (!std::filesystem::exists(path))
    throw base::UserError("train",
                          "\"{}\" is missing, the reference of the run's preferences; begin the run anew, in another "
                          "train.folder",
                          path.string());
  const base::Json list = base::Json::parse("train", path.string(), base::read_file(path)).at("margins");
  std::vector<Margins> all;
  for (const base::Json& margins : list.list()) {
    Margins& one = all.emplace_back();
    for (const base::Json& margin : margins.list()) one.push_back(margin.number());
  }
  bool fits = all.size() == sources.size();
  for (size_t i = 0; fits && i < all.size(); ++i) fits = all[i].size() == sources[i]->num_samples();
  if (!fits) list.fail("the reference is not that of the run's pairs");
  return all;
}

}  // namespace

void set_reference(Rank& rank, bool resumed, const std::function<void(std::string_view)>& now) {
  if (config::method(rank.settings().train) != config::Method::dpo) return;
  const std::vector<samples::PreferenceSamples*> sources = sources_of(rank.corpus);
  const std::filesystem::path path = rank.folder() / kReferenceFile;
  std::vector<Margins> all;
  if (resumed) {
    for (const samples::PreferenceSamples* source : sources) all.emplace_back(source->num_samples());
    comm::together(*rank.all, [&] {
      if (rank.leads()) all = read_margins(path, sources);
    });
    for (Margins& margins : all) rank.all->wait(rank.all->broadcast(std::as_writable_bytes(std::span(margins)), 0));
  } else {
    now("computing the reference");
    const int from = rank_with_margins(rank);
    for (const samples::PreferenceSamples* source : sources) all.push_back(compute_margins(rank, *source, from));
    comm::together(*rank.all, [&] {
      if (rank.leads()) base::write_file_atomically(path, to_json(all));
    });
  }
  for (size_t i = 0; i < sources.size(); ++i) sources[i]->set_reference(all[i]);
}

}  // namespace kintsugi::train
