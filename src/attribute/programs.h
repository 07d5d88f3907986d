// SPDX-License-Identifier: Apache-2.0
// What kind of program a process runs, as far as it matters for whose a process is: by the file it executes, never by
// its name or title, which anybody can choose. Pure; protection.h is about who may be ended.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "model/process.h"

namespace vacate {

/// `login`: what lets a user in and keeps his session: sshd, tmux, a desktop's shell.
enum class Program { ordinary, shell, login, service_manager, container_runtime };

/// `shells`: Snapshot::shells. An executable that could not be read counts as `ordinary`.
[[nodiscard]] Program program_of(const Process& process, const std::vector<std::string>& shells);

/// Is the file below a directory that only root fills: /usr/bin, /usr/lib, /opt, ...? A home directory is none of them.
[[nodiscard]] bool is_system_path(std::string_view path) noexcept;
/// Is it the service of a scheduler, a login or a container runtime? Those are restarted beside the work that they
/// started, which is not theirs: a younger main process or a stopped unit says nothing of it. By name, for it only
/// spares.
[[nodiscard]] bool is_service_of_others_work(std::string_view unit) noexcept;

/// What follows the last slash.
[[nodiscard]] std::string_view base_name(std::string_view path) noexcept;
template <std::same_as<std::string> Text>
std::string_view base_name(Text&& path) noexcept = delete;  // a view into what is gone

/// Pid 1 of the scan's pid namespace or of one below it.
[[nodiscard]] bool is_first_of_namespace(const Process& process) noexcept;

}  // namespace vacate
