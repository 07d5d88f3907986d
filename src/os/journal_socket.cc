// SPDX-License-Identifier: Apache-2.0
#include "os/journal_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr const char* kWhat = "the journal";

/// The length in the little-endian form of the protocol, whatever this machine's is.
std::string length_of(std::string_view value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>((static_cast<std::uint64_t>(value.size()) >> shift) & 0xFFU);
  return bytes;
}

/// A folder that others can write to would let them put a socket of theirs there.
Result<void> check_place(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto folder = open_trusted_directory(path.substr(0, slash + 1));
  if (!folder) return folder.error();
  struct stat info {};
  if (fstatat(folder->get(), path.c_str() + slash + 1, &info, AT_SYMLINK_NOFOLLOW) != 0) return system_error(path);
  if (!S_ISSOCK(info.st_mode) || info.st_uid != 0) return Error{ErrorCode::refused, path + " is no socket of root's"};
  return {};
}

/// 0, or the errno.
int send_message(int socket, msghdr& message) {
  for (;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

int send_bytes(int socket, std::string_view bytes) {
  iovec part{const_cast<char*>(bytes.data()),
             bytes.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast): read only
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return send_message(socket, message);
}

int send_descriptor(int socket, int descriptor) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return send_message(socket, message);
}

/// `bytes` in a file in memory that nobody can change any more: the journal takes no other.
Result<UniqueFd> sealed_file(std::string_view bytes) {
  UniqueFd file(memfd_create("vacate-record", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return system_error("memfd_create");
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("a memory file");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return system_error("sealing a memory file");
  return file;
}

bool is_too_large(int number) { return number == EMSGSIZE || number == ENOBUFS; }
bool is_full(int number) { return number == EAGAIN || number == EWOULDBLOCK; }

}  // namespace

std::string encode_journal(const std::vector<JournalField>& fields) {
  std::string bytes;
  for (const auto& [name, value] : fields) {
    const bool plain = value.find('\n') == std::string::npos;
    bytes += name;
    bytes += plain ? "=" : "\n" + length_of(value);
    bytes += value;
    bytes += '\n';
  }
  return bytes;
}

Result<JournalSocket> JournalSocket::connect(const std::string& path) {
  if (auto checked = check_place(path); !checked) return checked.error().within(kWhat);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{ErrorCode::bug, path + " is too long for a socket"};
  std::copy(path.begin(), path.end(), address.sun_path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error(kWhat);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) return Error{ErrorCode::gone, std::string(kWhat) + ": nobody listens at " + path};
    return system_error(kWhat);
  }
  return JournalSocket(std::move(socket));
}

Result<void> JournalSocket::send(const std::vector<JournalField>& fields, Deadline deadline) {
  const std::string bytes = encode_journal(fields);
  UniqueFd file;
  for (;;) {
    const int failure = file ? send_descriptor(socket_.get(), file.get()) : send_bytes(socket_.get(), bytes);
    if (failure == 0) return {};
    if (is_too_large(failure) && !file) {
      auto sealed = sealed_file(bytes);
      if (!sealed) return sealed.error().within(kWhat);
      file = std::move(*sealed);
      continue;
    }
    if (!is_full(failure)) return system_error(kWhat, failure);
    pollfd entry{socket_.get(), POLLOUT, 0};
    if (deadline.passed() || (poll(&entry, 1, deadline.poll_timeout_ms()) == 0))
      return Error{ErrorCode::timed_out, std::string(kWhat) + " takes nothing"};
  }
}

}  // namespace vacate
