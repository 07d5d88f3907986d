// SPDX-License-Identifier: Apache-2.0
// Translates FUSE requests into calls of DriverCore. Replies whose sending fails are of no interest: the kernel refuses
// one only where the caller is gone.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "lab/driver/fuse_operations.h"
#include "lab/driver/fuse_server.h"

namespace lab {

namespace {

constexpr double kNeverExpires = 10.0 * 365 * 86400;  // attributes: a stat must not have to ask
constexpr off_t kNodeSize = 1 << 18;                  // what can be mapped
constexpr off_t kSlowSize = 1 << 26;                  // of `slow`

FuseServer& server_of(fuse_req_t request) { return *static_cast<FuseServer*>(fuse_req_userdata(request)); }

struct stat attributes(const FuseServer& server, const Node& node) {
  struct stat about {};
  about.st_ino = node.inode;
  about.st_nlink = 1;
  about.st_uid = server.owner();
  about.st_gid = server.group();
  if (node.kind == NodeKind::directory) {
    about.st_mode = S_IFDIR | 0755;
  } else if (node.kind == NodeKind::lab) {
    about.st_mode = S_IFREG | 0600;
  } else {
    // A regular file: the kernel would look for the driver of a character device in itself and never ask us.
    about.st_mode = S_IFREG | 0666;
    about.st_size = node.kind == NodeKind::slow ? kSlowSize : kNodeSize;
  }
  return about;
}

void on_init(void* /*userdata*/, fuse_conn_info* connection) {
  // Truncation at open would make the file, and with it what can be mapped, empty.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_SPLICE_READ | FUSE_CAP_AUTO_INVAL_DATA);
  // RELEASE is a background request: none may ever be held back behind a limit, or queries would overtake it.
  connection->max_background = 65535;
  connection->congestion_threshold = 65535;
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  FuseServer& server = server_of(request);
  const Node* node = parent == FUSE_ROOT_ID ? server.core().nodes().by_name(name) : nullptr;
  if (node == nullptr) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = node->inode;
  entry.attr = attributes(server, *node);
  entry.attr_timeout = kNeverExpires;
  entry.entry_timeout = kNeverExpires;
  fuse_reply_entry(request, &entry);
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  FuseServer& server = server_of(request);
  const Node* node = server.core().nodes().by_inode(inode);
  if (node == nullptr) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const struct stat about = attributes(server, *node);
  fuse_reply_attr(request, &about, kNeverExpires);
}

/// Truncation and new times are accepted and change nothing, as on a device node.
void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat* /*wanted*/, int /*what*/, fuse_file_info* file) {
  on_getattr(request, inode, file);
}

void on_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  DriverCore& core = server_of(request).core();
  const Node* node = core.nodes().by_inode(inode);
  FileId id = 0;
  const int error = node == nullptr ? ENOENT : core.open(*node, id);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  file->fh = id;
  // Direct I/O would make the nodes impossible to map; the lab's own file has no size and needs it.
  file->direct_io = node->kind == NodeKind::lab ? 1 : 0;
  file->keep_cache = node->kind == NodeKind::lab ? 0 : 1;
  // The open was given up meanwhile: there will be no RELEASE.
  if (fuse_reply_open(request, file) == -ENOENT) core.release(id);
}

void on_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* file) {
  DriverCore& core = server_of(request).core();
  if (const std::int64_t delay_ms = core.read_delay_ms(file->fh); delay_ms != 0) {
    server_of(request).delayed().before_interrupt(request, delay_ms);  // success without bytes: zeros
    return;
  }
  const Node* node = core.nodes().by_inode(inode);
  const auto begin = static_cast<std::size_t>(offset);
  if (node != nullptr && node->kind == NodeKind::lab) {
    const std::string_view text = core.text(file->fh);
    const std::string_view part = begin < text.size() ? text.substr(begin, size) : std::string_view{};
    fuse_reply_buf(request, part.data(), part.size());
    return;
  }
  const auto end = static_cast<std::size_t>(kNodeSize);
  const std::vector<char> zeros(begin < end ? std::min(size, end - begin) : 0);
  fuse_reply_buf(request, zeros.data(), zeros.size());
}

void on_write(fuse_req_t request, fuse_ino_t /*inode*/, const char* /*data*/, std::size_t size, off_t /*offset*/,
              fuse_file_info* /*file*/) {
  fuse_reply_write(request, size);  // also the way back of pages dirtied through a shared mapping
}

void on_flush(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
  FuseServer& server = server_of(request);
  const std::int64_t delay_ms = server.core().take_flush_delay_ms(file->fh, fuse_req_ctx(request)->pid);
  if (delay_ms == 0) {
    fuse_reply_err(request, 0);
  } else {
    server.delayed().after(request, ReplyKind::status, delay_ms);
  }
}

void on_release(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
  server_of(request).core().release(file->fh);
  fuse_reply_err(request, 0);
}

void on_ioctl(fuse_req_t request, fuse_ino_t /*inode*/, unsigned command, void* /*arg*/, fuse_file_info* file,
              unsigned /*flags*/, const void* in, std::size_t in_size, std::size_t out_size) {
  FuseServer& server = server_of(request);
  const std::string_view bytes(in_size == 0 ? "" : static_cast<const char*>(in), in_size);
  const IoctlAnswer answer = server.core().ioctl(file->fh, fuse_req_ctx(request)->pid, command, bytes);
  if (answer.error != 0) {
    fuse_reply_err(request, answer.error);
  } else if (answer.when == IoctlAnswer::When::never) {
    server.delayed().after(request, ReplyKind::ioctl, kForEver);
  } else if (answer.when == IoctlAnswer::When::after_interrupt) {
    server.delayed().after_interrupt(request, file->fh, answer.delay_ms);
  } else {
    if (answer.answers_waiting) server.delayed().answer(file->fh);
    fuse_reply_ioctl(request, 0, answer.out.data(), std::min(answer.out.size(), out_size));
  }
}

void on_readdir(fuse_req_t request, fuse_ino_t /*inode*/, std::size_t size, off_t offset, fuse_file_info* /*file*/) {
  FuseServer& server = server_of(request);
  const auto& nodes = server.core().nodes().all();
  std::vector<char> buffer(size);
  std::size_t filled = 0;
  for (auto index = static_cast<std::size_t>(offset) + 1; index < nodes.size(); ++index) {  // the root is not in itself
    const struct stat about = attributes(server, nodes[index]);
    const std::size_t needed = fuse_add_direntry(request, buffer.data() + filled, size - filled,
                                                 nodes[index].name.c_str(), &about, static_cast<off_t>(index));
    if (needed > size - filled) break;
    filled += needed;
  }
  fuse_reply_buf(request, buffer.data(), filled);
}

}  // namespace

fuse_lowlevel_ops fuse_operations() {
  fuse_lowlevel_ops operations{};
  operations.init = on_init;
  operations.lookup = on_lookup;
  operations.getattr = on_getattr;
  operations.setattr = on_setattr;
  operations.open = on_open;
  operations.read = on_read;
  operations.write = on_write;
  operations.flush = on_flush;
  operations.release = on_release;
  operations.ioctl = on_ioctl;
  operations.readdir = on_readdir;
  return operations;
}

}  // namespace lab
