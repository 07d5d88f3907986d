// SPDX-License-Identifier: Apache-2.0
// Making directories, files and mounts for a machine, each with an error that names what it was for. Used only inside
// the machine's own mount namespaces.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace lab {

/// Makes `path` and what is missing above it, mode 0755.
[[nodiscard]] vacate::Result<void> make_directories(const std::string& path);
/// Makes one directory, or gives an existing one this mode, whatever the umask.
[[nodiscard]] vacate::Result<void> make_directory(const std::string& path, mode_t mode);
/// Writes a file, with the directories above it.
[[nodiscard]] vacate::Result<void> write_file(const std::string& path, std::string_view text, mode_t mode = 0644);
/// The whole of a file; empty if it cannot be read.
[[nodiscard]] std::string read_file(const std::string& path);

[[nodiscard]] vacate::Result<void> mount_tmpfs(const std::string& path, mode_t mode);
/// Shows the file `source` as `target`, which is made if need be.
[[nodiscard]] vacate::Result<void> bind_file(const std::string& source, const std::string& target);
/// The same for a file of the host that nobody in the machine may change.
[[nodiscard]] vacate::Result<void> bind_read_only(const std::string& source, const std::string& target);
/// From now on no mount made here shows in another namespace, nor the other way round.
[[nodiscard]] vacate::Result<void> make_mounts_private();
/// Makes `root`, a mount point, the root of the calling process's mount namespace; the old one is gone.
[[nodiscard]] vacate::Result<void> pivot_into(const std::string& root);

}  // namespace lab
