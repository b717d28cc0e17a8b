// `kintsugi evaluate MODEL --task NAME`: the accuracy of a model on an evaluation task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/model_options.h"

namespace kintsugi::app {

struct EvaluateTasks {
  std::shared_ptr<ModelOptions> model;
  std::vector<std::string> also;  // further models, for the table
  std::string task;               // a name, or a file; of a task or a group
  std::string data;               // a file or a folder
  std::string shots_data;         // the same of examples
  int64_t shots = 0;              // examples before each context
  std::string dump;               // a file for the results of each document; empty: none
  int64_t sequence = 0;           // tokens that are read of each request at most; 0: the model's positions
  int64_t batch = 0;
  bool begin = false;
};

void evaluate_tasks(const EvaluateTasks& options);

}  // namespace kintsugi::app
