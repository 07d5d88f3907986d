// SPDX-License-Identifier: Apache-2.0
#include "probe/descriptor_walk.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

constexpr std::uint32_t kOwnerBits = 0700;
constexpr std::string_view kBufferLink = "/dmabuf:";
/// Tables compared with before a thread's is walked anew. More private tables than that in one process are counted
/// again.
constexpr std::size_t kMostKnownTables = 16;

int number_of(const char* name) noexcept { return static_cast<int>(parse_unsigned(name).value_or(0)); }

/// From fd/ to the file in fdinfo/ beside it: of the same process or thread as the open directory, whoever has the
/// number now.
Result<std::string> read_info_text(const ProcDirectory& descriptors, const char* name) {
  return descriptors.read((std::string("../fdinfo/") + name).c_str());
}

}  // namespace

bool note_failure(Walk& walk, pid_t pid, const Error& error) {
  if (error.code == ErrorCode::gone) return false;
  if (error.code == ErrorCode::denied) {
    if (walk.denied.empty() || walk.denied.back() != pid) walk.denied.push_back(pid);
  } else {
    walk.failed.emplace_back(pid, error.message);
  }
  return false;
}

void DescriptorWalk::walk(const Process& process, Walk& found) {
  if (process.kernel_thread || is_gone(process)) return;
  const pid_t pid = process.key.pid;
  const bool leader_has_table = process.state != 'Z';
  if (process.threads <= 1) {
    if (leader_has_table) (void)walk_table(context_.root.open_below(pid, "fd"), pid, pid, found);
    return;
  }
  const auto directory = context_.root.open(pid);
  if (!directory) {
    (void)note_failure(found, pid, directory.error());
    return;
  }
  if (leader_has_table && !walk_table(directory->open("fd"), pid, pid, found)) return;
  walk_all_threads(*directory, process, found);
}

void DescriptorWalk::look_at(pid_t pid, pid_t tid, int fd, Walk& found) {
  const auto folder = tid == pid ? std::string("fd") : "task/" + std::to_string(tid) + "/fd";
  const auto descriptors = context_.root.open_below(pid, folder.c_str());
  if (!descriptors) {
    (void)note_failure(found, pid, descriptors.error());
    return;
  }
  const auto name = std::to_string(fd);
  const auto file = descriptors->identity(name.c_str());
  if (!file) {
    (void)note_failure(found, pid, file.error());  // unless it was closed meanwhile
    return;
  }
  take_descriptor({pid, tid, *descriptors, found}, name.c_str(), *file);
}

void DescriptorWalk::walk_all_threads(const ProcDirectory& process, const Process& about, Walk& found) {
  const pid_t pid = about.key.pid;
  const auto tasks = process.open("task");
  const auto tids = tasks ? list_numbers(*tasks, tasks_) : Result<std::vector<pid_t>>(tasks.error());
  if (!tids) {
    (void)note_failure(found, pid, tids.error());
    return;
  }
  std::vector<pid_t> known_tables;
  if (about.state != 'Z') known_tables.push_back(pid);
  walk_threads(*tasks, *tids, std::move(known_tables), pid, found);
}

void DescriptorWalk::walk_threads(pid_t pid, const std::vector<pid_t>& tids, Walk& found) {
  const auto tasks = context_.root.open_below(pid, "task");
  if (tasks)
    walk_threads(*tasks, tids, {pid}, pid, found);
  else
    (void)note_failure(found, pid, tasks.error());
}

void DescriptorWalk::walk_threads(const ProcDirectory& tasks, const std::vector<pid_t>& tids,
                                  std::vector<pid_t> known_tables, pid_t pid, Walk& found) {
  for (const pid_t tid : tids) {
    if (tid == pid) continue;
    // kcmp is the only way to tell a table of its own from the shared one. Where it is forbidden or missing the
    // thread's table is walked; a descriptor seen in the leader's is not counted again when hits are summed up.
    const bool shares = std::any_of(known_tables.begin(), known_tables.end(),
                                    [&](pid_t other) { return compare_tables(tid, other) == 0; });
    if (shares) continue;
    const auto descriptors = tasks.open_below(tid, "fd");
    if (!descriptors) {
      (void)note_failure(found, pid, descriptors.error());  // unless it ended meanwhile
      continue;
    }
    if (known_tables.size() < kMostKnownTables) known_tables.push_back(tid);
    if (!walk_table(descriptors, pid, tid, found)) return;
  }
}

bool DescriptorWalk::walk_table(const Result<ProcDirectory>& descriptors, pid_t pid, pid_t tid, Walk& found) {
  if (!descriptors) return note_failure(found, pid, descriptors.error());
  const Table table{pid, tid, *descriptors, found};
  reader_.start_new(descriptors->descriptor());
  while (const char* name = reader_.next()) {
    const auto file = descriptors->identity(name);
    if (file) {
      take_descriptor(table, name, *file);
    } else if (file.error().code == ErrorCode::denied) {
      return note_failure(found, pid, file.error());
    } else if (!is_of_no_interest(table, name)) {
      (void)note_failure(found, pid, file.error());  // unless it was closed meanwhile
    }
  }
  return reader_.error() == 0 || note_failure(found, pid, system_error("fd", reader_.error()));
}

/// What cannot be asked may be a file on a dead file system: no GPU node, no pipe. Its name tells.
bool DescriptorWalk::is_of_no_interest(const Table& table, const char* name) const {
  const auto link = table.descriptors.read_link(name);
  return context_.watched.empty() && link && link->starts_with('/') && !link->starts_with(kBufferLink) &&
         !ends_in_node_name(*link);
}

void DescriptorWalk::take_descriptor(const Table& table, const char* name, const FileIdentity& file) {
  auto& found = table.found;
  const auto& files = context_.files;
  const auto& watched = context_.watched;
  if (std::find(watched.begin(), watched.end(), file.device) != watched.end())
    found.files.push_back({table.pid, table.tid, number_of(name), file.device, file.inode});
  if (file.is_fifo() || file.is_socket()) {
    if (file.is_socket() || file.device == files.pipe_device)
      found.channels.push_back({file.inode, table.pid, table.tid, number_of(name), file.is_socket()});
  } else if (file.device == files.anonymous_device) {
    if (file.inode != files.anonymous_inode) take_ring(table, name);
  } else if (file.is_typeless()) {
    take_buffer(table, name, file);
  } else if (const auto node = context_.nodes.match(file)) {
    take_node(table, name, *node);
  }
}

/// O_PATH never reached the driver. Its link has no permission bits; neither has one opened with access mode 3, so ask.
bool DescriptorWalk::is_path_only(const Table& table, const char* name) const {
  const auto link = table.descriptors.identity(name, Links::keep);
  if (link && (link->mode & kOwnerBits) != 0) return false;
  const auto text = read_info_text(table.descriptors, name);
  const auto info = text ? parse_fdinfo(*text) : std::nullopt;
  return info && info->is_path_only();
}

/// How it was opened is a second question, and the number may be of another file by then, and back. So the answer
/// counts when it was the same twice, of the same node before, between and after. Where that changes all the time, the
/// last one counts. fdinfo would tell both at once, but asks the driver, which may be stuck.
void DescriptorWalk::take_node(const Table& table, const char* name, NodeKey node) {
  static constexpr int kMostTries = 16;
  bool is_answered = false;
  bool path_only = false;
  for (int tries = 1;; ++tries) {
    const bool answer = is_path_only(table, name);
    const auto file = table.descriptors.identity(name);
    if (!file) {
      (void)note_failure(table.found, table.pid, file.error());  // unless it was closed meanwhile
      return;
    }
    const auto now = context_.nodes.match(*file);
    if (!now) return;
    if (tries == kMostTries || (is_answered && path_only == answer && *now == node)) {
      if (!answer) table.found.hits.push_back({table.pid, table.tid, number_of(name), *now});
      return;
    }
    is_answered = *now == node;
    path_only = answer;
    node = *now;
  }
}

void DescriptorWalk::take_ring(const Table& table, const char* name) {
  const auto link = table.descriptors.read_link(name);
  if (!link) (void)note_failure(table.found, table.pid, link.error());
  if (!link || *link != "anon_inode:[io_uring]") return;
  const auto info = read_info(table, name);
  if (!info) return;
  for (const auto& path : info->user_files)
    if (ends_in_node_name(path)) table.found.rings.push_back({table.pid, number_of(name), path});
}

/// A buffer of the driver, exported: of no device number, told by its exporter (facts.md 2.2.7).
void DescriptorWalk::take_buffer(const Table& table, const char* name, const FileIdentity& file) {
  static constexpr std::string_view kExporter = "nv_dmabuf";
  const auto link = table.descriptors.read_link(name);
  if (!link) (void)note_failure(table.found, table.pid, link.error());
  if (!link || !link->starts_with(kBufferLink)) return;
  const auto info = read_info(table, name);
  if (info && info->exporter == kExporter)
    table.found.hits.push_back({table.pid, table.tid, number_of(name), {NodeKind::dma_buf, file.device, file.inode}});
}

/// Not to be read is a failure, unless it was closed meanwhile.
std::optional<FdInfo> DescriptorWalk::read_info(const Table& table, const char* name) const {
  const auto text = read_info_text(table.descriptors, name);
  if (!text) (void)note_failure(table.found, table.pid, text.error());
  return text ? parse_fdinfo(*text) : std::nullopt;
}

}  // namespace vacate
