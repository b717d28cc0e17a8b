// Manifests for Kubernetes checked against the schema of MPIJob v2beta1 and the operator's own validation (Kubeflow MPI
// operator, manifests/base and pkg/apis/kubeflow/validation), and of the fields of pods that they use; without a
// network.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/jobs/job.h"
#include "tests/paths.h"

namespace kintsugi::jobs::manifest_test {
namespace {

namespace fs = std::filesystem;

// YAML as the manifests use it: blocks of "key: value" and "- item", plain and double-quoted scalars, comments.
struct Node {
  enum class Kind { text, integer, boolean, object, list } kind = Kind::object;
  std::string text;
  std::vector<std::pair<std::string, Node>> members;
  std::vector<Node> items;

  const Node* find(std::string_view name) const {
    for (const auto& [key, value] : members)
      if (key == name) return &value;
    return nullptr;
  }
};

class Yaml {
 public:
  explicit Yaml(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      const size_t first = line.find_first_not_of(' ');
      if (first != line.npos && line[first] != '#') lines_.push_back({first, line.substr(first)});
    }
  }
  Node read() {
    Node node = block(0);
    if (at_ != lines_.size()) throw std::runtime_error("indentation of \"" + lines_[at_].text + "\"");
    return node;
  }

 private:
  struct Line {
    size_t indent;
    std::string text;
  };

  static Node scalar(const std::string& text) {
    Node node;
    node.kind = Node::Kind::text;
    if (text.starts_with('"')) {
      for (size_t i = 1; i + 1 < text.size(); ++i) node.text += text[i] == '\\' ? text[++i] : text[i];
      if (text.size() < 2 || text.back() != '"') throw std::runtime_error("quotes of " + text);
      return node;
    }
    node.text = text;
    if (std::regex_match(text, std::regex("-?[0-9]+"))) node.kind = Node::Kind::integer;
    if (text == "true" || text == "false") node.kind = Node::Kind::boolean;
    return node;
  }

  Node block(size_t indent) {
    Node node;
    while (at_ < lines_.size() && lines_[at_].indent == indent) {
      Line& line = lines_[at_];
      // A list may have the indentation of its key, and ends where the next key begins.
      if (node.kind == Node::Kind::list && !line.text.starts_with("- ")) break;
      if (line.text.starts_with("- ")) {
        node.kind = Node::Kind::list;
        if (!std::regex_search(line.text, std::regex("^- [A-Za-z./]+:( |$)"))) {
          node.items.push_back(scalar(line.text.substr(2)));
          ++at_;
          continue;
        }
        line = {indent + 2, line.text.substr(2)};  // the first member of an object
        node.items.push_back(block(indent + 2));
        continue;
      }
      const size_t colon = line.text.find(':');
      if (colon == line.text.npos) throw std::runtime_error("no key in \"" + line.text + "\"");
      const std::string key = line.text.substr(0, colon), rest = line.text.substr(colon + 1);
      ++at_;
      if (node.find(key)) throw std::runtime_error("twice: " + key);
      if (!rest.empty()) {
        node.members.emplace_back(key, scalar(rest.substr(1)));
      } else {
        const size_t deeper = at_ < lines_.size() ? lines_[at_].indent : 0;
        const bool list = deeper == indent && lines_[at_].text.starts_with("- ");
        if (deeper <= indent && !list) throw std::runtime_error("nothing in " + key);
        node.members.emplace_back(key, block(deeper));
      }
    }
    return node;
  }

  std::vector<Line> lines_;
  size_t at_ = 0;
};

// A field: its path, "[]" for the items of a list and "*" for any key; what it is; and whether its object must have it.
struct Field {
  std::string_view path, type;  // text, integer, object, list, or the allowed texts, separated by |
  bool required = false;
};

const std::vector<Field>& schema() {
  static const std::vector<Field> kFields = [] {
    std::vector<Field> fields = {
        {"apiVersion", "kubeflow.org/v2beta1", true},
        {"kind", "MPIJob", true},
        {"metadata", "object", true},
        {"metadata/name", "text", true},
        {"metadata/namespace", "text"},
        {"spec", "object", true},
        {"spec/slotsPerWorker", "integer", true},
        {"spec/runLauncherAsWorker", "boolean"},
        {"spec/sshAuthMountPath", "text", true},
        {"spec/launcherCreationPolicy", "AtStartup|WaitForWorkersReady"},
        {"spec/mpiImplementation", "OpenMPI|Intel|MPICH"},
        {"spec/runPolicy", "object", true},
        {"spec/runPolicy/cleanPodPolicy", "None|Running|All", true},
        {"spec/runPolicy/ttlSecondsAfterFinished", "integer"},
        {"spec/runPolicy/activeDeadlineSeconds", "integer"},
        {"spec/runPolicy/backoffLimit", "integer"},
        {"spec/runPolicy/suspend", "boolean"},
        {"spec/mpiReplicaSpecs", "object", true},
        {"spec/mpiReplicaSpecs/Launcher", "object", true},
        {"spec/mpiReplicaSpecs/Worker", "object"},
        {"spec/mpiReplicaSpecs/*/replicas", "integer", true},
        {"spec/mpiReplicaSpecs/*/restartPolicy", "Never|OnFailure", true},
        {"spec/mpiReplicaSpecs/*/template", "object", true},
        {"spec/mpiReplicaSpecs/*/template/spec", "object", true},
        {"spec/mpiReplicaSpecs/*/template/spec/containers", "list", true},
        {"spec/mpiReplicaSpecs/*/template/spec/volumes", "list"},
    };
    static constexpr Field kPod[] = {
        {"containers/[]", "object"},
        {"containers/[]/name", "text", true},
        {"containers/[]/image", "text", true},
        {"containers/[]/workingDir", "text"},
        {"containers/[]/securityContext", "object"},
        {"containers/[]/securityContext/runAsUser", "integer"},
        {"containers/[]/command", "list"},
        {"containers/[]/command/[]", "text"},
        {"containers/[]/env", "list"},
        {"containers/[]/env/[]", "object"},
        {"containers/[]/env/[]/name", "text", true},
        {"containers/[]/env/[]/value", "text"},
        {"containers/[]/resources", "object"},
        {"containers/[]/resources/limits", "object"},
        {"containers/[]/resources/limits/*", "integer"},
        {"containers/[]/volumeMounts", "list"},
        {"containers/[]/volumeMounts/[]", "object"},
        {"containers/[]/volumeMounts/[]/name", "text", true},
        {"containers/[]/volumeMounts/[]/mountPath", "text", true},
        {"volumes/[]", "object"},
        {"volumes/[]/name", "text", true},
        {"volumes/[]/persistentVolumeClaim", "object"},
        {"volumes/[]/persistentVolumeClaim/claimName", "text", true},
    };
    static std::vector<std::string> paths;  // which the fields refer to
    paths.reserve(std::size(kPod));
    for (const Field& f : kPod) {
      paths.push_back(fmt::format("spec/mpiReplicaSpecs/*/template/spec/{}", f.path));
      fields.push_back({paths.back(), f.type, f.required});
    }
    return fields;
  }();
  return kFields;
}

bool matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const size_t p = std::min(pattern.find('/'), pattern.size()), q = std::min(path.find('/'), path.size());
    if (pattern.substr(0, p) != "*" && pattern.substr(0, p) != path.substr(0, q)) return false;
    pattern.remove_prefix(std::min(p + 1, pattern.size()));
    path.remove_prefix(std::min(q + 1, path.size()));
  }
  return pattern.empty() && path.empty();
}

bool has_type(const Node& node, std::string_view type) {
  using Kind = Node::Kind;
  if (type == "object") return node.kind == Kind::object;
  if (type == "list") return node.kind == Kind::list && !node.items.empty();
  if (type == "integer") return node.kind == Kind::integer && !node.text.starts_with('-');
  if (type == "boolean") return node.kind == Kind::boolean;
  if (node.kind != Kind::text) return false;
  return type == "text" || ("|" + std::string(type) + "|").find("|" + node.text + "|") != std::string::npos;
}

void check_node(const Node& node, const std::string& path, std::vector<std::string>& errors) {
  if (!path.empty()) {
    const auto field = std::ranges::find_if(schema(), [&](const Field& f) { return matches(f.path, path); });
    if (field == schema().end()) return errors.push_back("unknown field " + path);
    if (!has_type(node, field->type)) errors.push_back(fmt::format("{} is not {}", path, field->type));
  }
  const std::string below = path.empty() ? "" : path + "/";
  for (const auto& [key, value] : node.members) {
    std::string name = key;
    std::ranges::replace(name, '/', '~');  // "nvidia.com/gpu"
    check_node(value, below + name, errors);
  }
  for (const Node& item : node.items) check_node(item, below + "[]", errors);
  if (node.kind != Node::Kind::object) return;
  for (const Field& f : schema()) {
    const size_t last = f.path.rfind('/');
    const std::string_view parent = last == f.path.npos ? "" : f.path.substr(0, last), name = f.path.substr(last + 1);
    if (f.required && matches(parent, path) && !node.find(name))
      errors.push_back(fmt::format("{}{} is missing", below, name));
  }
}

// What the API server or the operator would refuse.
std::vector<std::string> errors_of(const std::string& manifest) {
  std::vector<std::string> errors;
  Node root;
  try {
    root = Yaml(manifest).read();
  } catch (const std::exception& e) {
    return {e.what()};
  }
  check_node(root, "", errors);
  if (!errors.empty()) return errors;
  const Node& replicas = *root.find("spec")->find("mpiReplicaSpecs");
  if (replicas.find("Launcher")->find("replicas")->text != "1") errors.push_back("the launcher has not 1 replica");
  const int workers = std::stoi(replicas.find("Worker")->find("replicas")->text);
  if (workers < 1) errors.push_back("there are no workers");
  const std::string host = fmt::format("{}-worker-{}", root.find("metadata")->find("name")->text, workers - 1);
  if (!std::regex_match(host, std::regex("[a-z0-9]([-a-z0-9]*[a-z0-9])?")) || host.size() > 63)
    errors.push_back(host + " is not a host name");
  return errors;
}

Job job() {
  Job job;
  const fs::path path = fs::path(tests::source_folder()) / "sites/kubernetes.toml";
  job.site = read_site(base::read_file(path), path.string());
  job.site.image = "me/kintsugi:1";
  job.name = "kintsugi-first";
  job.asked = "kintsugi job run.toml --site kubernetes";
  job.command = "/opt/kintsugi/kintsugi";
  job.arguments = {"run.toml", "--set", "train.prompts=[\"it's: - x\"]"};
  job.folder = "/home/me/my work";
  job.run_folder = "/home/me/my work/runs/first";
  job.script = "/home/me/my work/runs/first/job.yaml";
  job.mpi = "pmix";
  job.nodes = 2, job.ranks = 4, job.seconds = 3600;
  return job;
}

using Errors = std::vector<std::string>;

}  // namespace

TEST(Manifest, IsAnMpiJob) {
  EXPECT_EQ(errors_of(base::read_file(fs::path(tests::source_folder()) / "kintsugi/jobs/golden/kubernetes.yaml")),
            Errors());
  EXPECT_EQ(errors_of(script(job())), Errors());
  Job full = job();
  full.on_devices = true;
  full.site.claim = "runs";
  full.site.environment = {{"NCCL_DEBUG", "WARN", "errors only"}, {"OMP_NUM_THREADS", "1", "a number is a text there"}};
  full.mpi = "pmi2";
  EXPECT_EQ(errors_of(script(full)), Errors()) << script(full);
  const Node spec = Yaml(script(full)).read();
  EXPECT_EQ(spec.find("spec")->find("mpiImplementation")->text, "MPICH");
  const Node& launcher = spec.find("spec")
                             ->find("mpiReplicaSpecs")
                             ->find("Launcher")
                             ->find("template")
                             ->find("spec")
                             ->find("containers")
                             ->items[0];
  EXPECT_EQ(launcher.find("command")->items[4].text, "train.prompts=[\"it's: - x\"]");
}

TEST(Manifest, NamesAreThoseOfHosts) {
  for (const char* name :
       {"kintsugi-First-Run", "kintsugi-a--", "kintsugi-0123456789012345678901234567890123456789-x"}) {
    Job named = job();
    named.name = name;
    named.nodes = 10'000, named.ranks = 10'000;
    EXPECT_EQ(errors_of(script(named)), Errors()) << name;
  }
}

// That the check refuses what the operator does.
TEST(Manifest, FaultsAreFound) {
  const std::string good = script(job());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    if (at == text.npos) return Errors({"nothing to change"});
    return errors_of(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(changed("slotsPerWorker: 2", "slotPerWorker: 2"),
            Errors({"unknown field spec/slotPerWorker", "spec/slotsPerWorker is missing"}));
  EXPECT_EQ(changed("slotsPerWorker: 2", "slotsPerWorker: \"2\""), Errors({"spec/slotsPerWorker is not integer"}));
  EXPECT_EQ(changed("v2beta1", "v1"), Errors({"apiVersion is not kubeflow.org/v2beta1"}));
  EXPECT_EQ(changed("restartPolicy: OnFailure", "restartPolicy: ExitCode"),
            Errors({"spec/mpiReplicaSpecs/Launcher/restartPolicy is not Never|OnFailure"}));
  EXPECT_EQ(changed("      replicas: 1\n", "      replicas: 2\n"), Errors({"the launcher has not 1 replica"}));
  EXPECT_EQ(changed("    backoffLimit: 100\n", "     backoffLimit: 100\n").size(), 1u);
  EXPECT_EQ(changed("          - name: worker", "          - nam: worker").size(), 2u);
  EXPECT_EQ(changed("- \"launch\"", "- 7"),
            Errors({"spec/mpiReplicaSpecs/Launcher/template/spec/containers/[]/command/[] is not text"}));
  EXPECT_EQ(changed("name: kintsugi-first", "name: kintsugi_first"),
            Errors({"kintsugi_first-worker-1 is not a host name"}));
}

}  // namespace kintsugi::jobs::manifest_test
