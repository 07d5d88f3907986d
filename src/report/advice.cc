// SPDX-License-Identifier: Apache-2.0
#include "report/advice.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"

namespace vacate {
namespace {

std::vector<const Holder*> endable(const Attribution& attribution, Standing standing) {
  std::vector<const Holder*> found;
  for (const auto& holder : attribution.holders)
    if (holder.standing == standing && holder.pins_memory() && !holder.protection) found.push_back(&holder);
  return found;
}

/// " --gpu 1" where fewer GPUs were selected than there are: the advice must not reach further than the question did.
std::string gpu_option(const Snapshot& snapshot, const Attribution& attribution) {
  if (attribution.accounts.size() == snapshot.gpus.size()) return "";
  std::string list;
  for (const auto& account : attribution.accounts) list += fmt::format("{}{}", list.empty() ? "" : ",", account.index);
  return list.empty() ? "" : " --gpu " + list;
}

std::string pid_option(const std::vector<const Holder*>& holders) {
  std::string list;
  for (const auto* holder : holders) list += fmt::format("{}{}", list.empty() ? "" : ",", holder->key.pid);
  return " --pid " + list;
}

void advise_on_holders(const Snapshot& snapshot, const Attribution& attribution, std::vector<Advice>& advice) {
  static constexpr std::size_t kMostNamed = 4;
  const std::string gpus = gpu_option(snapshot, attribution);
  if (const auto leftover = endable(attribution, Standing::leftover); !leftover.empty())
    advice.push_back(
        {fmt::format("{} can be ended", counted(leftover.size(), "leftover", "leftovers")), "vacate free" + gpus});
  if (const auto unsure = endable(attribution, Standing::unsure); !unsure.empty()) {
    const auto text = fmt::format("{} may be left over, see 'vacate status'; to end {}",
                                  counted(unsure.size(), "holder", "holders"), unsure.size() == 1 ? "it" : "them");
    advice.push_back({text, "vacate free --unsure" + (unsure.size() <= kMostNamed ? pid_option(unsure) : gpus)});
  }
}

bool is_held(const Attribution& attribution, const GpuAccount& account) {
  return std::any_of(account.holders.begin(), account.holders.end(), [&](pid_t pid) {
    const auto* holder = attribution.find(pid);
    return holder == nullptr || holder->pins_memory();
  });
}

/// Memory beside no holder: only watching it tells a late release from what no process holds.
void advise_on_residue(const Attribution& attribution, std::vector<Advice>& advice) {
  static constexpr Bytes kTolerance = mebibytes(128);
  std::vector<std::uint64_t> gpus;
  for (const auto& account : attribution.accounts)
    if (!is_held(attribution, account) && account.remainder.known() && *account.remainder > kTolerance)
      gpus.push_back(account.index);
  if (gpus.empty()) return;
  std::string list;
  for (const auto index : gpus) list += fmt::format("{}{}", list.empty() ? "" : ",", index);
  advice.push_back({fmt::format("memory without a holder on GPU {}: watch whether it still falls", format_ranges(gpus)),
                    "vacate free --gpu " + list});
}

}  // namespace

std::vector<Advice> advise(const Snapshot& snapshot, const Attribution& attribution) {
  std::vector<Advice> advice;
  advise_on_holders(snapshot, attribution, advice);
  if (snapshot.visibility.complete()) advise_on_residue(attribution, advice);
  if (!snapshot.caller.root && !snapshot.visibility.complete())
    advice.push_back({"other users' processes are not visible: root sees them", "sudo vacate"});
  return advice;
}

std::string render_advice(const Advice& advice, const RenderStyle& style) {
  const std::string text = printable(advice.text) + ":";
  const std::string command = printable(advice.command);
  const bool fits = display_width(text) + 1 + display_width(command) <= style.width;
  return fmt::format("{}{}{}\n", text, fits ? " " : "\n  ", painted(command, Paint::strong, style));
}

}  // namespace vacate
