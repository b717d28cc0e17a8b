// Job scripts. Each runs one supervisor, `kintsugi launch --with`, below the directives of its scheduler.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "kintsugi/base/error.h"
#include "kintsugi/jobs/job.h"

namespace kintsugi::jobs {
namespace {

using launch::Scheduler;

// Quotes a shell word where necessary.
std::string word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

// Quotes a command of the site in double quotes, so that the script's shell expands variables.
std::string expanded(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// In a directive, or in the command that starts the ranks: the launcher replaces their numbers in that one, as nodes
// may be lost; srun takes later options over earlier ones.
std::string filled(std::string text, const Job& job, bool in_directive = true) {
  const int64_t per_node = job.ranks_per_node();
  const bool replaced =
      !in_directive && (job.site.scheduler == Scheduler::pbs || job.site.scheduler == Scheduler::flux);
  const auto of_launch = [&](std::string_view place, int64_t value) {
    return replaced ? std::string(place) : fmt::format("{}", value);
  };
  const std::array<std::pair<std::string_view, std::string>, 6> places = {{
      {"{nodes}", in_directive ? fmt::format("{}", job.nodes + job.spares) : of_launch("{nodes}", job.nodes)},
      {"{ranks}", of_launch("{ranks}", job.ranks)},
      {"{ranks_per_node}", fmt::format("{}", per_node)},
      {"{cores}", fmt::format("{}", std::max<int64_t>(1, job.site.cores / per_node))},
      {"{devices}", fmt::format("{}", job.site.devices)},
      {"{mpi}", job.mpi},
  }};
  for (const auto& [name, value] : places)
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

std::string launcher_of(const Job& job) {
  std::string command = job.site.launch;
  if (job.on_devices && !job.site.launch_devices.empty()) command += " " + job.site.launch_devices;
  return filled(command, job, false);
}

std::string partition_name(const Job& job) {
  return job.partition.empty() ? job.site.partition : job.partition;
}

bool mentions(const Job& job, std::string_view text) {
  return std::ranges::any_of(job.site.directives, [&](const std::string& d) { return d.find(text) != d.npos; });
}

std::string log_of(const Job& job, std::string_view id) {
  return fmt::format("{}/job_{}.log", job.run_folder, id);
}

// Quotes for a directive.
std::string quoted_log(const Job& job, std::string_view id) {
  const std::string log = log_of(job, id);
  return log.find(' ') == std::string::npos ? log : "\"" + log + "\"";
}

std::string slurm_directives(const Job& job) {
  std::string text;
  const auto add = [&](const std::string& directive) { text += "#SBATCH " + directive + "\n"; };
  add("--job-name=" + job.name);
  const int64_t nodes = job.nodes + job.spares;
  add(job.least_nodes > 0 && job.least_nodes < nodes ? fmt::format("--nodes={}-{}", job.least_nodes, nodes)
                                                     : fmt::format("--nodes={}", nodes));
  const int64_t cores = job.site.cores > 0 ? std::max<int64_t>(1, job.site.cores / job.ranks_per_node()) : 1;
  if (job.least_nodes > 0 && job.least_nodes < nodes) {
    // From the ranks of the fewest nodes Slurm would conclude that more nodes are not needed.
    add(fmt::format("--mincpus={}", cores * job.ranks_per_node()));
  } else {
    add(fmt::format("--ntasks-per-node={}", job.ranks_per_node()));
    if (job.site.cores > 0 && job.site.launch.find("--cpus-per-task") == std::string::npos)
      add(fmt::format("--cpus-per-task={}", cores));
  }
  add("--time=" + time_text(job.seconds));
  if (const std::string p = partition_name(job); !p.empty()) add("--partition=" + p);
  if (!job.account.empty()) add("--account=" + job.account);
  for (const std::string& d : job.site.directives) add(filled(d, job));
  text += fmt::format(
      "# {} s before the limit the script alone (B:) is sent USR1, and passes it on: the run ends its step and "
      "saves.\n",
      job.save_seconds);
  add(fmt::format("--signal=B:USR1@{}", job.save_seconds));
  add(job.site.requeue ? "--requeue" : "--no-requeue");
  text += "# A lost node does not end the job: the launcher continues on the others.\n";
  add("--no-kill");
  text += "# A requeued job appends to its log.\n";
  add("--open-mode=append");
  add("--output=" + quoted_log(job, "%j"));
  return text;
}

std::string pbs_directives(const Job& job) {
  std::string text;
  const auto add = [&](const std::string& directive) { text += "#PBS " + directive + "\n"; };
  add("-N " + job.name);
  if (!mentions(job, "select="))
    add(fmt::format("-l select={}:mpiprocs={}{}", job.nodes + job.spares, job.ranks_per_node(),
                    job.site.cores > 0 ? fmt::format(":ncpus={}", job.site.cores) : ""));
  add("-l walltime=" + fmt::format("{:02}:{:02}:{:02}", job.seconds / 3600, job.seconds / 60 % 60, job.seconds % 60));
  if (const std::string p = partition_name(job); !p.empty()) add("-q " + p);
  if (!job.account.empty()) add("-A " + job.account);
  for (const std::string& d : job.site.directives) add(filled(d, job));
  text += "# The job may be run again: after its time limit it asks for that itself (qrerun).\n";
  add(job.site.requeue ? "-r y" : "-r n");
  add("-j oe");
  add("-o " + quoted_log(job, "pbs"));
  return text;
}

std::string flux_directives(const Job& job) {
  std::string text;
  const auto add = [&](const std::string& directive) { text += "#flux: " + directive + "\n"; };
  add("--job-name=" + job.name);
  add(fmt::format("-N {}", job.nodes + job.spares));
  add(fmt::format("-n {}", (job.nodes + job.spares) * job.ranks_per_node()));
  if (job.site.cores > 0) add(fmt::format("-c {}", std::max<int64_t>(1, job.site.cores / job.ranks_per_node())));
  add(fmt::format("--time-limit={}s", job.seconds));
  if (const std::string p = partition_name(job); !p.empty()) add("--queue=" + p);
  if (!job.account.empty()) add("--bank=" + job.account);
  for (const std::string& d : job.site.directives) add(filled(d, job));
  add("--output=" + quoted_log(job, "{{id}}"));
  return text;
}

// Resubmission after the time limit, in the shell of the script.
std::string again_of(const Job& job) {
  switch (job.site.scheduler) {
    case Scheduler::slurm:
      return job.site.requeue ? "scontrol requeue $SLURM_JOB_ID" : "sbatch --dependency=singleton " + word(job.script);
    case Scheduler::pbs:
      return job.site.requeue ? "qrerun $PBS_JOBID" : "qsub -W depend=afterany:$PBS_JOBID " + word(job.script);
    case Scheduler::flux:
      return "flux --parent batch --dependency=afterany:$(flux getattr jobid) " + word(job.script);
    case Scheduler::none:
    case Scheduler::kubernetes:
      return "";
  }
  return "";
}

// What to set, or not, on the file system of the site.
std::string storage_advice(const Job& job) {
  if (job.site.storage == "lustre")
    return fmt::format(
        "# Lustre: checkpoints are one file per rank. With files of several GiB, spread each over storage targets, "
        "once and\n"
        "# before the first run: lfs setstripe --stripe-count 4 --stripe-size 4M {}\n",
        word(job.run_folder));
  if (job.site.storage == "gpfs") return "# GPFS spreads files over its disks itself: no stripes are to be set.\n";
  return "";
}

std::string directives_of(const Job& job) {
  switch (job.site.scheduler) {
    case Scheduler::slurm:
      return slurm_directives(job);
    case Scheduler::pbs:
      return pbs_directives(job);
    case Scheduler::flux:
      return flux_directives(job);
    case Scheduler::none:
    case Scheduler::kubernetes:
      return "";
  }
  return "";
}

std::string arguments_of(const Job& job) {
  std::string text;
  for (const std::string& a : job.arguments) text += " " + word(a);
  return text;
}

std::string shell_script(const Job& job) {
  std::string text = fmt::format("#!/bin/bash\n# {}: written by `{}`.\n", job.site.title, job.asked);
  text += directives_of(job);
  for (const std::string& m : job.site.modules) text += "module load " + word(m) + "\n";
  text += fmt::format("set -euo pipefail\ncd {}\n", word(job.folder));  // only here: modules use unset variables
  for (const Setting& s : job.site.environment)
    text += fmt::format("# {}\nexport {}={}\n", s.why, s.name, word(s.value));
  text += storage_advice(job);
  text += "# It starts the ranks, passes signals on to them, and decides what follows when they have ended.\n";
  text += fmt::format("exec {} launch{} \\\n  --with {} \\\n", word(job.command), arguments_of(job),
                      expanded(launcher_of(job)));
  // Slurm itself signals when the limit is near.
  if (job.site.scheduler != Scheduler::slurm)
    text += fmt::format("  --stop-after {} \\\n", job.seconds - job.save_seconds);
  if (const std::string again = again_of(job); !again.empty())
    text += fmt::format("  --again {} \\\n", expanded(again));
  if (job.guard) text += fmt::format("  --guard {} \\\n", expanded(again_of_guard(job)));
  return text + fmt::format("  --ranks-per-node {}\n", job.ranks_per_node());
}

// Quotes a text for YAML, whose double-quoted strings include JSON's.
std::string yaml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

constexpr int kKubernetesRetries = 100;  // of the launcher's pod; the launcher itself counts attempts

std::string pod(const Job& job, std::string_view name, const std::vector<std::string>& command) {
  std::string text = fmt::format("        spec:\n          containers:\n          - name: {}\n            image: {}\n",
                                 name, yaml(job.site.image));
  text += fmt::format("            workingDir: {}\n", yaml(job.folder));
  text += "            securityContext:\n              runAsUser: 1000\n            command:\n";
  for (const std::string& c : command) text += "            - " + yaml(c) + "\n";
  std::string environment;
  for (const Setting& s : job.site.environment)
    environment += fmt::format("            # {}\n            - name: {}\n              value: {}\n", s.why, s.name,
                               yaml(s.value));
  if (name == "launcher")
    environment += fmt::format(
        "            # sshd of the workers listens there; a worker that has not started yet is tried again\n"
        "            - name: {}\n"
        "              value: \"-p 2222 -o ConnectionAttempts=60 -o StrictHostKeyChecking=no\"\n",
        job.mpi == "pmi2" ? "HYDRA_LAUNCHER_EXTRA_ARGS" : "OMPI_MCA_plm_rsh_args");
  if (!environment.empty()) text += "            env:\n" + environment;
  if (name == "worker" && job.on_devices)
    text += fmt::format("            resources:\n              limits:\n                nvidia.com/gpu: {}\n",
                        job.ranks_per_node());
  if (!job.site.claim.empty())
    text += fmt::format(
        "            volumeMounts:\n            - name: run\n              mountPath: {}\n          volumes:\n         "
        " - "
        "name: run\n            persistentVolumeClaim:\n              claimName: {}\n",
        yaml(job.folder), yaml(job.site.claim));
  return text;
}

// The name of a job whose workers' host names are labels of DNS: NAME-worker-9999, in lower case.
std::string label_of(const Job& job) {
  std::string name = job.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr size_t kMost = 63;
  name.resize(std::min(name.size(), kMost - fmt::format("-worker-{}", job.nodes - 1).size()));
  while (name.ends_with('-')) name.pop_back();
  return name;
}

std::string manifest(const Job& job) {
  std::vector<std::string> launch = {job.command, "launch"};
  launch.insert(launch.end(), job.arguments.begin(), job.arguments.end());
  const std::vector<std::string> options = {"--with", launcher_of(job), "--stop-after",
                                            fmt::format("{}", job.seconds - job.save_seconds)};
  launch.insert(launch.end(), options.begin(), options.end());
  std::string text = fmt::format("# {}: written by `{}`.\n", job.site.title, job.asked);
  text += fmt::format(
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata:\n  name: {}\nspec:\n  slotsPerWorker: {}\n"
      "  mpiImplementation: {}\n",
      label_of(job), job.ranks_per_node(), job.mpi == "pmi2" ? "MPICH" : "OpenMPI");
  text += "  # Of the user of the image; its keys are mounted there.\n  sshAuthMountPath: /home/mpiuser/.ssh\n";
  text += "  launcherCreationPolicy: WaitForWorkersReady\n";
  text +=
      fmt::format("  runPolicy:\n    cleanPodPolicy: Running\n    backoffLimit: {}\n    activeDeadlineSeconds: {}\n",
                  kKubernetesRetries, job.seconds);
  text += "  mpiReplicaSpecs:\n    Launcher:\n      replicas: 1\n      restartPolicy: OnFailure\n      template:\n";
  text += pod(job, "launcher", launch);
  text += fmt::format("    Worker:\n      replicas: {}\n      restartPolicy: OnFailure\n      template:\n", job.nodes);
  text += pod(job, "worker", {"/usr/sbin/sshd", "-De", "-p", "2222", "-f", "/home/mpiuser/.sshd_config"});
  return text;
}

}  // namespace

std::string script(const Job& job) {
  return job.site.scheduler == Scheduler::kubernetes ? manifest(job) : shell_script(job);
}

std::string again_of_guard(const Job& job) {
  switch (job.site.scheduler) {
    case Scheduler::slurm:
      return "sbatch --parsable --kill-on-invalid-dep=yes --dependency=afternotok:$SLURM_JOB_ID " + word(job.script);
    case Scheduler::pbs:
      return "qsub -W depend=afternotok:$PBS_JOBID " + word(job.script);
    case Scheduler::flux:
      return "flux --parent batch --dependency=afternotok:$(flux getattr jobid) " + word(job.script);
    case Scheduler::none:
    case Scheduler::kubernetes:
      return "";
  }
  return "";
}

std::string submit_command(const Job& job, std::string_view script_path) {
  const std::string path = word(script_path);
  switch (job.site.scheduler) {
    case Scheduler::none:
      return fmt::format("nohup bash {} >>{} 2>&1 </dev/null &", path, word(log_of(job, "local")));
    case Scheduler::slurm:
      return "sbatch " + path;
    case Scheduler::pbs:
      return "qsub " + path;
    case Scheduler::flux:
      return "flux batch " + path;
    case Scheduler::kubernetes:
      return "kubectl apply -f " + path;
  }
  throw base::InternalError("job", "a scheduler that is none");
}

}  // namespace kintsugi::jobs
