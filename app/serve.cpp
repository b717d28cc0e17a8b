#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "app/model_options.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/evaluate/cache_size.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/serve/engine.h"
#include "kintsugi/serve/service.h"
#include "kintsugi/text/chat_template.h"

namespace kintsugi::app {
namespace {

struct ServeOptions {
  std::shared_ptr<ModelOptions> model;
  std::string host = "127.0.0.1", name, chat, key_file;
  int64_t port = 8000, queue = 256, body = 4 << 20, connections = 64, context = 0, slots = 0, time_limit = 600,
          client = 10;
};

constexpr int64_t kRows = 64;  // tokens that a pass takes at most: of each text one, and of prompts what fits

constexpr int64_t kTexts = 8;  // at the same time by default, or fewer

std::string read_key(const std::string& path) {
  if (path.empty()) return "";
  constexpr base::MostBytes kMost = {4096, "a key"};
  std::string key = base::read_file(path, kMost);
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  if (key.empty()) throw base::UserError("serve", "\"{}\" holds no key", path);
  return key;
}

std::string served_name(const ServeOptions& o) {
  if (!o.name.empty()) return o.name;
  std::filesystem::path path = std::filesystem::path(o.model->model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

// Connections beyond those of requests that are generated, so that /health and /metrics answer when the server is full.
constexpr int kShortAnswers = 8;

// Listens in a thread of its own while the model's ranks work.
class Listening {
 public:
  Listening(const ServeOptions& o, serve::Service& service) {
    server_ = serve::open_http(
        o.host, static_cast<int>(o.port),
        {.body_bytes = static_cast<size_t>(o.body),
         .connections = static_cast<int>(o.connections) + kShortAnswers,
         .header_seconds = static_cast<int>(o.client)},
        [&service](const serve::HttpRequest& request) { return service.answer(request); }, serve::Service::refusal);
    thread_ = base::start_thread([this] { server_->run(); });
  }
  ~Listening() {
    server_->stop();
    thread_.join();
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  int port() const { return server_->port(); }

 private:
  std::unique_ptr<serve::HttpServer> server_;
  std::thread thread_;
};

// Closes the queue at the first signal.
class EndAtSignal {
 public:
  explicit EndAtSignal(serve::JobQueue& queue) : queue_(queue) {
    thread_ = base::start_thread([this] {
      while (!ended_ && StopSignals::count == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      queue_.close();
    });
  }
  ~EndAtSignal() {
    ended_ = true;
    thread_.join();
  }
  EndAtSignal(const EndAtSignal&) = delete;
  EndAtSignal& operator=(const EndAtSignal&) = delete;

 private:
  serve::JobQueue& queue_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

void serve_on_rank(const ServeOptions& o, const config::Parallel& layout, comm::World& world, Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  models::Graphs graphs;
  const int64_t context =
      o.context > 0 ? o.context : evaluate::default_positions(model.settings(), o.slots > 0 ? o.slots : 1);
  comm::together(model.all(), [&] {
    require_tokenizer("serve", model);
    if (context > model.settings().model.context)
      throw base::UserError("serve", "--context {} exceeds the model's {} positions", context,
                            model.settings().model.context);
    const int64_t slots = o.slots > 0 ? o.slots : evaluate::texts_that_fit(model.settings(), context, kTexts);
    graphs = models::build_serving(model.settings(), slots, std::max(kRows, slots), context);
  });
  if (model.leads()) progress.tell("loading the weights");
  const auto executor = model.load(graphs);
  serve::Engine engine(*executor, model.all());
  if (!model.leads()) return engine.run(nullptr);
  warn_of_repeated(model.repeated(), "the texts", progress);
  note_positions(context, model.settings().model.context, o.context > 0, progress);
  progress.finish();
  serve::JobQueue queue(static_cast<size_t>(o.queue));
  serve::Service service({.name = served_name(o),
                          .context = context,
                          .vocab = std::min<int64_t>(model.tokenizer()->vocab_size(), model.settings().model.vocab),
                          .begins = model.made_elsewhere(),
                          .chat = o.chat,
                          .key = read_key(o.key_file),
                          .time_limit = std::chrono::seconds(o.time_limit),
                          .requests = o.connections},
                         *model.tokenizer(), queue);
  const Listening listening(o, service);
  const EndAtSignal end(queue);
  StopSignals::at_once = false;
  print_at_once(fmt::format("serving {} on http://{}:{}\n", served_name(o), o.host, listening.port()));
  try {
    engine.run(&queue);
  } catch (...) {
    queue.close();
    throw;
  }
}

void serve_model(const ServeOptions& o) {
  if (!o.chat.empty()) text::chat_template(o.chat);
  const StopSignals signals;
  StopSignals::at_once = true;  // until it listens
  Progress progress("opening the model");
  on_ranks(
      "serve", *o.model,
      [](const config::Parallel& layout) { evaluate::require_whole_samples(plan::plan_from(layout), layout); },
      [&](const config::Parallel& layout, comm::World& world) { serve_on_rank(o, layout, world, progress); });
}

}  // namespace

void add_serve(Command& kintsugi) {
  constexpr int64_t kMost = 1'000'000'000;
  const Verb verb = kintsugi.add_verb("serve", "Serves a model over HTTP with an OpenAI-compatible API");
  const auto o = std::make_shared<ServeOptions>();
  o->model = add_model_options(verb);
  verb.text("--host", o->host, "The address to listen on").show_default();
  verb.integer("--port", o->port, {0, 65535}, "Port; 0: any free port").show_default();
  verb.text("--name", o->name, "Model name in requests; default: the folder's name");
  std::string chats;
  for (const text::ChatTemplate& chat : text::chat_templates())
    chats += (chats.empty() ? "" : ", ") + std::string(chat.name);
  verb.text("--chat", o->chat, fmt::format("Chat template: {}", chats));
  verb.text("--key-file", o->key_file, "A file with the API key that clients must send; default: none");
  verb.integer(
      "--context", o->context, {1, kMost},
      "Maximum tokens per text, including its prompt; default: the model's positions, or 8,192 if their caches "
      "exceed 4 GiB");
  verb.integer("--slots", o->slots, {1, 4096},
               "Number of texts generated concurrently; default: 8, fewer if their caches exceed 4 GiB");
  verb.integer("--queue", o->queue, {1, kMost}, "Maximum number of queued texts; further ones get status 429")
      .show_default();
  verb.integer("--max-body", o->body, {1, kMost}, "Bytes of a request's body").show_default();
  verb.integer("--connections", o->connections, {1, 4096},
               "Maximum number of concurrent requests; further ones get status 429")
      .show_default();
  verb.integer("--client-limit", o->client, {1, 3600},
               "Timeout in seconds for sending a request or receiving a part of a response")
      .show_default();
  verb.integer("--time-limit", o->time_limit, {1, kMost}, "Seconds for a request").show_default();
  verb.run([o] {
    find_best("serve", *o->model);
    serve_model(*o);
  });
}

}  // namespace kintsugi::app
