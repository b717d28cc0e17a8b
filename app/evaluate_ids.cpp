#include "app/evaluate_ids.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <thread>
#include <tuple>

#include "app/outputs.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/train/inspect.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
void evaluate_ids(const EvaluateIds& o) {
  require_one_process("evaluate --ids");
  const config::Resolved layout = evaluate::read_layout(
      "evaluate", o.model->sets, train::cores_of_all(base::usable_cores(), std::thread::hardware_concurrency()));
  print_warnings(layout);
  comm::require_threads(layout.settings.parallel.ranks);
  const std::array<base::Output, 1> outputs = {{{"--dump", o.dump}}};
  const std::array<std::filesystem::path, 1> inputs = {o.ids};
  require_outputs("evaluate", outputs, inputs);
  constexpr base::MostBytes kMost = {int64_t{64} << 20, "token ids"};
  const train::Samples samples = train::parse_samples(o.ids, base::read_file(o.ids, kMost));
  const exchange::SavedModel saved = exchange::open_model(o.model->model, *comm::self_communicator());
  const config::Settings s = evaluate::settings_now(saved.settings(), layout.settings.parallel, o.model->dtype);
  train::Inspection found = train::inspect(
      s, samples,
      [&](run::Executor& executor) { checkpoint::load_states(executor, *saved.weights, checkpoint::Load::weights); },
      o.balance_weight);
  const bool likely = config::objective(s.model) == config::Objective::next;
  if (!o.allow_not_finite) {
    const std::string over = fmt::format("over {} (--allow-not-finite prints it)", base::in_quotes(o.ids));
    if (!std::isfinite(found.loss)) throw base::UserError("evaluate", "the loss {} is NaN or infinity", over);
    if (likely) std::ignore = evaluate::perplexity("evaluate", over, found.loss);
  }
  if (!o.dump.empty()) {
    if (exchange::is_hugging_face(saved.folder())) found.gradients = train::as_in_folder(found.gradients, s.model);
    base::write_output(o.dump, train::print(found, s.train.dtype == "fp64" ? tensor::DType::f64 : tensor::DType::f32));
  }
  write_out("checkpoint {}\nids        {}, {} of {}\nloss       {}\n", saved.folder(), o.ids,
            base::counted(samples.count, "sample"), samples.sequence, base::format_loss(found.loss, 6));
  if (o.balance_weight > 0.0) write_out("balance    {}\n", base::format_loss(found.balance, 6));
  if (likely) write_out("perplexity {}\n", base::format_fixed(std::exp(found.loss), 4));
}

}  // namespace kintsugi::app
