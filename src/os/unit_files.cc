// SPDX-License-Identifier: Apache-2.0
#include "os/unit_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "os/expendable.h"
#include "os/frame.h"
#include "os/private_file.h"
#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr std::size_t kMostNames = 20000;  // of one folder
constexpr const char* kDropinName = "vacate.conf";
constexpr std::size_t kLargestDropin = std::size_t{1} << 20U;

std::string base_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string link_name_of(int folder, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlinkat(folder, name, target.data(), target.size());
  return length <= 0 ? std::string() : base_of({target.data(), static_cast<std::size_t>(length)});
}

/// The folder of drop-ins, made if it is not there.
Result<UniqueFd> open_dropin_folder(const std::string& folder, const std::string& name) {
  const auto parent = open_trusted_directory(folder);
  if (!parent) return parent.error();
  if (mkdirat(parent->get(), name.c_str(), 0755) != 0 && errno != EEXIST)
    return system_error(fmt::format("cannot make {}/{}", folder, name));
  return open_trusted_directory(folder + "/" + name);
}

/// May the file be replaced?
Result<void> check_present(int folder, const std::string& path, std::string_view mark) {
  struct stat there {};
  if (fstatat(folder, kDropinName, &there, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Result<void>() : Result<void>(system_error(path));
  const auto text = S_ISREG(there.st_mode) ? read_regular_file(path, kLargestDropin)
                                           : Result<std::string>(Error{ErrorCode::refused, "no regular file"});
  if (text && text->starts_with(mark)) return {};
  return Error{
      ErrorCode::refused,
      fmt::format("{} is there and was not made by 'vacate unit dropin': it stays as it is; move it away first",
                  printable(path, 300))};
}

bool write_all_of(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return fchmod(fd, 0644) == 0 && fsync(fd) == 0;
}

}  // namespace

const std::vector<std::string>& unit_folders() {
  static const std::vector<std::string> kFolders = {
      "/etc/systemd/system.control",   "/run/systemd/system.control",  "/run/systemd/transient",
      "/run/systemd/generator.early",  "/etc/systemd/system",          "/etc/systemd/system.attached",
      "/run/systemd/system",           "/run/systemd/system.attached", "/run/systemd/generator",
      "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",      "/lib/systemd/system",
      "/run/systemd/generator.late"};
  return kFolders;
}

UnitFileState look_at_unit_file(const std::string& path) {
  struct stat info {};
  UnitFileState state{UnitFileKind::missing, path};
  if (stat(path.c_str(), &info) != 0) return state;
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (real) state.target = real.get();
  if (state.target == "/dev/null" || (S_ISREG(info.st_mode) && info.st_size == 0))
    state.kind = UnitFileKind::masked;
  else if (S_ISREG(info.st_mode))
    state.kind = UnitFileKind::file;
  return state;
}

std::vector<UnitFolderEntry> list_unit_folder(const std::string& folder) {
  std::vector<UnitFolderEntry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()), closedir);
  if (!stream) return entries;
  while (const dirent* entry = readdir(stream.get())) {
    if (entry->d_name[0] == '.' || entries.size() >= kMostNames) continue;
    const bool may_link = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    entries.push_back({entry->d_name, may_link ? link_name_of(dirfd(stream.get()), entry->d_name) : std::string()});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

Result<std::string> trusted_own_program() {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink("/proc/self/exe", target.data(), target.size());
  if (length <= 0) return system_error("/proc/self/exe");
  std::string path(target.data(), static_cast<std::size_t>(length));
  if (const auto trusted = check_trusted_program(path); !trusted)
    return Error{ErrorCode::refused,
                 fmt::format("a unit that runs this vacate as root would run what others can put in its place ({}); "
                             "install it as root, as /usr/bin/vacate",
                             printable(trusted.error().message, 300))};
  return path;
}

Result<void> install_dropin(const std::string& folder, const std::string& unit, std::string_view text,
                            std::string_view mark) {
  const std::string dropins = unit + ".d";
  const std::string path = folder + "/" + dropins + "/" + kDropinName;
  const auto opened = open_dropin_folder(folder, dropins);
  if (!opened) return opened.error();
  // What open_trusted_directory gives is for look-ups only.
  const UniqueFd directory(openat(opened->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_error(path);
  if (auto may = check_present(directory.get(), path, mark); !may) return may;
  const std::string beside = fmt::format(".vacate-{}", getpid());  // systemd reads names that end in .conf alone
  const UniqueFd file(
      openat(directory.get(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write beside " + path);
  if (!write_all_of(file.get(), text) || renameat(directory.get(), beside.c_str(), directory.get(), kDropinName) != 0) {
    const Error error = system_error("cannot write " + path);
    static_cast<void>(unlinkat(directory.get(), beside.c_str(), 0));
    return error;
  }
  if (fsync(directory.get()) != 0) return system_error(path);
  return {};
}

Result<void> reload_service_manager(Deadline deadline, const std::string& socket) {
  static constexpr const char* kPeer = "org.freedesktop.systemd1";
  auto child = Expendable::start("vacate-reload", [&](int channel) {
    (void)clearenv();
    auto bus = SystemBus::connect(socket);
    auto done = bus ? bus->call({kPeer, "/org/freedesktop/systemd1", std::string(kPeer) + ".Manager"}, "Reload")
                    : Result<void>(bus.error());
    FrameWriter answer;
    answer.number(static_cast<std::uint8_t>(done ? 0 : 1 + static_cast<int>(done.error().code)));
    answer.text(done ? "" : done.error().message);
    return send_frame(channel, answer.bytes()) ? 0 : 1;
  });
  if (!child) return child.error();
  FrameStream stream(kLargestDropin);
  std::array<char, 4096> piece{};
  for (;;) {
    const auto count = child->read_some(piece.data(), piece.size(), deadline);
    if (!count) return count.error();
    if (*count == 0) return Error{ErrorCode::io, "the reload was not answered"};
    stream.feed({piece.data(), *count});
    const auto frame = stream.next();
    if (!frame) continue;
    FrameReader answer(*frame);
    const auto code = answer.number<std::uint8_t>();
    const std::string message(answer.text());
    if (answer.failed() || code > 1 + static_cast<int>(ErrorCode::bug)) return Error{ErrorCode::malformed, "reload"};
    if (code == 0) return {};
    return Error{static_cast<ErrorCode>(code - 1), printable(message, 300)};
  }
}

}  // namespace vacate
