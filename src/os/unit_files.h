// SPDX-License-Identifier: Apache-2.0
// Where the system's service manager keeps units, and what lies there. Reads, and writes one drop-in. What the files
// say is read elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "os/system_bus.h"

namespace vacate {

/// Folders of units of the system's manager, the first wins (systemd.unit(5); systemd-analyze unit-paths on 252).
[[nodiscard]] const std::vector<std::string>& unit_folders();

/// Where drop-ins of this machine belong.
inline constexpr const char* kOwnUnitFolder = "/etc/systemd/system";

enum class UnitFileKind { missing, file, masked };

/// `masked`: empty, or a link to /dev/null.
struct UnitFileState {
  UnitFileKind kind = UnitFileKind::missing;
  std::string target;  ///< where links lead, absolute; the path itself if it is none
};
[[nodiscard]] UnitFileState look_at_unit_file(const std::string& path);

/// A name in a folder, and the name of what it links to where it is a link.
struct UnitFolderEntry {
  std::string name;
  std::string link_name;
};
/// Sorted by name; nothing where there is no such folder or it cannot be read.
[[nodiscard]] std::vector<UnitFolderEntry> list_unit_folder(const std::string& folder);

/// The path of the running program, if nobody but root could have put it there. refused: which part of the path
/// somebody else could have.
[[nodiscard]] Result<std::string> trusted_own_program();

/// Writes `folder`/`unit`.d/vacate.conf, mode 0644, all of it or nothing; makes the folder of drop-ins if it is not
/// there. refused: a file of this name is there that does not begin with `mark`, or somebody else than root could write
/// there. denied: not root.
[[nodiscard]] Result<void> install_dropin(const std::string& folder, const std::string& unit, std::string_view text,
                                          std::string_view mark);

/// Makes the manager read its units again. gone: no bus, so no manager.
[[nodiscard]] Result<void> reload_service_manager(Deadline deadline, const std::string& socket = kSystemBusSocket);

}  // namespace vacate
