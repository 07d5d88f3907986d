// SPDX-License-Identifier: Apache-2.0
// Who a caller is in every pid namespace from the server's inwards, so that its number can be told to callers in other
// namespaces even when it is long dead. Reads /proc; keeps no process alive and signals nobody.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lab {

/// A pid namespace and those around it, as far as the server's own.
struct NamespaceChain {
  vacate::UniqueFd innermost;  ///< keeps the namespaces, so that their inode numbers mean nothing else meanwhile
  std::vector<ino_t> inodes;   ///< the server's first
};

/// One process, alive or dead.
struct ProcessIdentity {
  std::vector<pid_t> numbers;  ///< its pid in each namespace of `chain`
  std::shared_ptr<const NamespaceChain> chain;

  [[nodiscard]] ino_t innermost_namespace() const { return chain->inodes.back(); }
  /// Its pid in the namespace `inode`; nothing where it is not visible.
  [[nodiscard]] std::optional<pid_t> number_in(ino_t inode) const;
  /// Its pid in the machine's top pid namespace: one below the server's, if it is in one.
  [[nodiscard]] pid_t machine_number() const { return numbers[numbers.size() > 1 ? 1 : 0]; }
};

/// The processes visible in this process's pid namespace.
class ProcessTable {
 public:
  /// Takes hold of /proc as it is now; later mounts over it do no harm. An error if it shows another pid namespace.
  [[nodiscard]] static vacate::Result<ProcessTable> open();

  /// Identity of the process that thread `tid` is part of. Only while the thread cannot end: it waits for our answer.
  [[nodiscard]] vacate::Result<ProcessIdentity> identify(pid_t tid);

  /// The number, in the server's pid namespace, of the process that thread `tid` is part of, also while that exits.
  [[nodiscard]] vacate::Result<pid_t> process_of(pid_t tid) const;

  [[nodiscard]] int proc_fd() const noexcept { return proc_.get(); }

 private:
  explicit ProcessTable(vacate::UniqueFd proc) : proc_(std::move(proc)) {}
  vacate::Result<std::shared_ptr<const NamespaceChain>> namespaces_of(pid_t tid, std::size_t depth);

  vacate::UniqueFd proc_;
  std::map<ino_t, std::weak_ptr<const NamespaceChain>> chains_;  ///< by innermost inode
};

}  // namespace lab
