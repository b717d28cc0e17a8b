#include <fmt/format.h>

#include <memory>

#include "app/progress.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/exchange/import_folder.h"

namespace kintsugi::app {

void add_import(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("import", "Imports a Hugging Face folder as a checkpoint");
  const auto options = std::make_shared<exchange::ImportOptions>();
  verb.text("folder", options->folder, "A folder with config.json and safetensors files").required();
  verb.text("run", options->run, "Output run folder; must be empty or not exist").required();
  verb.flag("--allow-not-finite", options->allow_not_finite, "Allow NaN and infinite weights");
  verb.run([options] {
    require_one_process("import");
    Progress progress("importing");
    const exchange::Imported made = exchange::import_folder(*options);
    progress.finish();
    if (made.ids > made.vocab)
      write_err(
          "warning: the tokenizer has {} ids, but the model's embedding only {} rows; texts with higher ids are "
          "rejected\n",
          made.ids, made.vocab);
    for (const std::string& note : made.notes) write_out("note       {}\n", note);
    write_out("checkpoint {}\n", made.checkpoint);
  });
}

}  // namespace kintsugi::app
