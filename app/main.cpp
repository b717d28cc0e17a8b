#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/verbs.h"

int main(int argc, char** argv) {
  using namespace kintsugi::app;
  // The verbs, in the order of the help page.
  constexpr std::array<AddVerb, 7> kVerbs = {add_prepare,  add_check,   add_train, add_generate,
                                             add_evaluate, add_explain, add_show};
  const auto command = make_command(kVerbs);
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  return run_command(*command, args, std::cout, std::cerr);
}
