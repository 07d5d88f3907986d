// SPDX-License-Identifier: Apache-2.0
// The only user of CLI11 beside the files that say which options a command has. Its exceptions end here: what leaves is
// a value.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "model/scan_use.h"

namespace vacate {

/// What every command has: --help as a switch of its own, and the rest left over for parse_words() to explain.
void add_help(CLI::App& app, bool& help);
/// An option that may be given several times.
void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values);
void add_switch(CLI::App& app, const std::string& name, bool& value);
/// An option of one value: the last that is given counts.
void add_value(CLI::App& app, const std::string& name, std::optional<std::string>& value);

/// Long names of every option of `app`, with their dashes.
[[nodiscard]] std::vector<std::string> names_of(const CLI::App& app);
/// "; did you mean 'X'?", or nothing.
[[nodiscard]] std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

/// Every piece between commas; empty ones stay, to be complained about.
void cut_at_commas(std::vector<std::string>& words);

/// Nothing, or what is wrong. `beside`: names that may be meant as well where one is unknown.
[[nodiscard]] std::optional<std::string> parse_words(CLI::App& app, const std::vector<std::string>& arguments,
                                                     const std::vector<std::string>& beside = {});
/// `time` stays as it is where no word was given.
[[nodiscard]] std::optional<std::string> parse_time(std::string_view option, const std::optional<std::string>& word,
                                                    std::chrono::milliseconds& time);
/// Of --scan; `method` stays as it is where no word was given.
[[nodiscard]] std::optional<std::string> parse_scan(const std::optional<std::string>& word, ScanMethod& method);
[[nodiscard]] std::optional<std::string> first_of(std::initializer_list<std::optional<std::string>> complaints);

}  // namespace vacate
