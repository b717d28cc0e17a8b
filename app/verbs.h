// The verbs of the command `kintsugi`, one file each. Each function adds its verb, with its options, its page and
// what it does: base::UserError for bad input is printed by the command, which exits with 1.
#pragma once

#include "app/command.h"

namespace kintsugi::app {

void add_prepare(Command& kintsugi);
void add_show(Command& kintsugi);
void add_new(Command& kintsugi);
void add_check(Command& kintsugi);
void add_compare(Command& kintsugi);
void add_plan(Command& kintsugi);
void add_search(Command& kintsugi);
void add_scaling(Command& kintsugi);
void add_explain(Command& kintsugi);
void add_devices(Command& kintsugi);
void add_bench(Command& kintsugi);
void add_scale(Command& kintsugi);
void add_train(Command& kintsugi);
void add_job(Command& kintsugi);
void add_launch(Command& kintsugi);
void add_sweep(Command& kintsugi);
void add_status(Command& kintsugi);
void add_watch(Command& kintsugi);
void add_profile(Command& kintsugi);
void add_report(Command& kintsugi);
void add_evaluate(Command& kintsugi);
void add_embed(Command& kintsugi);
void add_probe(Command& kintsugi);
void add_classify(Command& kintsugi);
void add_predict(Command& kintsugi);
void add_generate(Command& kintsugi);
void add_chat(Command& kintsugi);
void add_serve(Command& kintsugi);
void add_import(Command& kintsugi);
void add_export(Command& kintsugi);
void add_completion(Command& kintsugi);
void add_man(Command& kintsugi);

}  // namespace kintsugi::app
