// SPDX-License-Identifier: Apache-2.0
// The folders, as the runtimes' documentation and sources name them: containerd keeps a bundle for each task in
// STATE/io.containerd.runtime.v2.task/NAMESPACE/ID (v1.linux before 1.4's shim), Docker's namespace is "moby" and that
// of Kubernetes "k8s.io"; runc and crun keep ROOT/ID; containers/storage keeps overlay-containers/ID in memory and on
// disk.
#include "os/container_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "os/expendable_pass.h"
#include "os/procfs.h"
#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr std::size_t kMostNamespaces = 64;

enum class Depth { id_below, id_below_namespace };
enum class Record { containerd_tasks, oci, docker, storage_memory, storage_disk };
struct StateFolder {
  const char* path;
  Depth depth;
  Record record;
};

constexpr auto kFolders = std::to_array<StateFolder>({
    {"/run/containerd/io.containerd.runtime.v2.task", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/containerd/io.containerd.runtime.v1.linux", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/docker/containerd/daemon/io.containerd.runtime.v2.task", Depth::id_below_namespace,
     Record::containerd_tasks},
    {"/run/k3s/containerd/io.containerd.runtime.v2.task", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/k0s/containerd/io.containerd.runtime.v2.task", Depth::id_below_namespace, Record::containerd_tasks},
    {"/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task", Depth::id_below_namespace,
     Record::containerd_tasks},
    {"/run/docker/runtime-runc", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/docker/runtime-nvidia", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/containerd/runc", Depth::id_below_namespace, Record::containerd_tasks},
    {"/run/runc", Depth::id_below, Record::oci},
    {"/run/crun", Depth::id_below, Record::oci},
    {"/run/containers/storage/overlay-containers", Depth::id_below, Record::storage_memory},
    {"/var/lib/containers/storage/overlay-containers", Depth::id_below, Record::storage_disk},
    {"/var/lib/docker/containers", Depth::id_below, Record::docker},
});

/// Names below a folder of O_PATH, capped; nothing where they cannot be listed.
std::optional<std::vector<std::string>> list_names(int folder) {
  const UniqueFd open_folder(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open_folder) return std::nullopt;
  std::vector<std::string> names;
  DirectoryReader reader;
  reader.start(open_folder.get());
  while (const char* name = reader.next()) {
    if (names.size() == kMostNamespaces) return std::nullopt;
    names.emplace_back(name);
  }
  if (reader.error() != 0) return std::nullopt;
  return names;
}

/// Everything of one container; for the expendable child.
class Lookup {
 public:
  explicit Lookup(std::string id) : id_(std::move(id)) {}

  ContainerTraces run() {
    traces_.all_looked_up = true;
    bool memory = false;
    bool disk = false;
    for (const auto& folder : kFolders) {
      const auto opened = open_trusted_directory(folder.path);
      if (!opened) {
        traces_.all_looked_up = traces_.all_looked_up && opened.error().code == ErrorCode::gone;
        continue;
      }
      memory = memory || folder.record == Record::storage_memory;
      disk = disk || folder.record == Record::storage_disk;
      traces_.oci_runs = traces_.oci_runs || folder.record == Record::oci;
      traces_.docker_data = traces_.docker_data || folder.record == Record::docker;
      if (folder.depth == Depth::id_below) {
        look_below(opened->get(), folder.path);
      } else {
        look_below_namespaces(*opened, folder);
      }
    }
    traces_.oci_data = memory && disk;
    return traces_;
  }

 private:
  void look_below(int folder, const std::string& path) {
    struct stat info {};
    if (fstatat(folder, id_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      traces_.found_in = path;
    } else if (errno != ENOENT) {
      traces_.all_looked_up = false;
    }
  }

  void look_below_namespaces(const UniqueFd& folder, const StateFolder& where) {
    const auto names = list_names(folder.get());
    if (!names) {
      traces_.all_looked_up = false;
      return;
    }
    for (const auto& name : *names) {
      const UniqueFd space(openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
      if (!space) {
        traces_.all_looked_up = traces_.all_looked_up && errno == ENOENT;
        continue;
      }
      traces_.docker_runs = traces_.docker_runs || name == "moby";
      traces_.cri_runs = traces_.cri_runs || name == "k8s.io";
      look_below(space.get(), std::string(where.path) + "/" + name);
    }
  }

  std::string id_;
  ContainerTraces traces_;
};

void write_traces(const ContainerTraces& traces, FrameWriter& out) {
  out.text(traces.found_in);
  for (const bool flag : {traces.all_looked_up, traces.docker_runs, traces.docker_data, traces.cri_runs,
                          traces.oci_runs, traces.oci_data})
    out.number(static_cast<std::uint8_t>(flag));
}

std::optional<ContainerTraces> read_traces(std::string_view bytes) {
  FrameReader in(bytes);
  ContainerTraces traces;
  traces.found_in = in.text();
  for (bool ContainerTraces::*flag :
       {&ContainerTraces::all_looked_up, &ContainerTraces::docker_runs, &ContainerTraces::docker_data,
        &ContainerTraces::cri_runs, &ContainerTraces::oci_runs, &ContainerTraces::oci_data})
    traces.*flag = in.number<std::uint8_t>() != 0;
  return in.complete() ? std::optional(std::move(traces)) : std::nullopt;
}

}  // namespace

Reading<bool> judge_traces(const std::string& runtime, const ContainerTraces& traces) {
  if (!traces.found_in.empty()) return true;
  if (!traces.all_looked_up) return Unknown::no_permission;
  if (runtime == "docker" && traces.docker_runs && traces.docker_data) return false;
  if (runtime == "containerd" && traces.cri_runs) return false;
  if ((runtime == "podman" || runtime == "cri-o") && traces.oci_runs && traces.oci_data) return false;
  return Unknown::not_supported;
}

std::vector<Existence> look_up_containers(const std::vector<ContainerQuestion>& questions) {
  static constexpr PassLimits kLimits{std::chrono::milliseconds{500}, 0, 65536};
  std::vector<Existence> answers;
  answers.reserve(questions.size());
  for (const auto& question : questions) answers.push_back({question.id, Unknown::timed_out, {}});
  ExpendablePass pass(
      "vacate-ids", questions.size(),
      [&](std::size_t index, FrameWriter& answer) { write_traces(Lookup(questions[index].id).run(), answer); },
      kLimits);
  (void)pass.finish([&](std::size_t index, std::string_view bytes) {
    const auto traces = read_traces(bytes);
    auto& answer = answers[index];
    answer.exists = traces ? judge_traces(questions[index].runtime, *traces) : Reading<bool>(Unknown::failed);
    if (traces) answer.source = traces->found_in;
    if (answer.exists.known() && !*answer.exists) answer.source = "the state of " + questions[index].runtime;
  });
  return answers;
}

}  // namespace vacate
