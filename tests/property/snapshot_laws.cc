// SPDX-License-Identifier: Apache-2.0
// What holds for every recording: it comes back bit for bit, the same machine gives the same bytes, and redaction
// changes names but neither standing nor plan.
#include <map>
#include <string>

#include "any_machine.h"
#include "app/redact.h"
#include "attribute/attribute.h"
#include "laws.h"
#include "plan/plan_free.h"
#include "report/snapshot_json.h"

namespace {

using namespace vacate;
using vacate::testing::any_snapshot;
using vacate::testing::below;
using vacate::testing::one_in;

std::uint64_t any_number() { return *rc::gen::arbitrary<std::uint64_t>() >> static_cast<unsigned>(below(64)); }

/// Bytes as a hostile process chooses them, pieces of what is escaped somewhere among them.
std::string any_bytes() {
  static const std::vector<std::string> kPieces = {"python3",      "\n",
                                                   "\"",           "\\",
                                                   "\x1b[2J",      "\xff",
                                                   "\xc3",         "\xe2\x80\xae",
                                                   "\xed\xa0\x80", std::string(1, '\0'),
                                                   "/home/a/",     "\xf0\x9f\x92\xa9",
                                                   "\xef\xbf\xbd", " ",
                                                   "\x7f",         "\xc2\x9b"};
  std::string bytes;
  for (int i = below(6); i > 0; --i)
    bytes += kPieces[static_cast<std::size_t>(below(static_cast<int>(kPieces.size())))];
  return bytes;
}

template <class T>
Reading<T> any_reading(T value) {
  return one_in(4) ? Reading<T>(static_cast<Unknown>(below(6))) : Reading<T>(std::move(value));
}

double any_figure() {
  static const std::vector<double> kHard = {0.1, -0.0, 1e-300, 5e-324, 1.7976931348623157e308, 1.0 / 3};
  return one_in(3) ? kHard[static_cast<std::size_t>(below(static_cast<int>(kHard.size())))]
                   : static_cast<double>(static_cast<std::int64_t>(any_number())) / 1024;
}

void garble(Process& process) {
  process.comm = any_bytes();
  process.user = any_bytes();
  if (one_in(2)) process.exe = any_reading(any_bytes());
  if (one_in(2)) process.argv = any_reading(std::vector<std::string>{any_bytes(), any_bytes()});
  process.cgroup = any_bytes();
  process.started = any_figure();
  process.tty = static_cast<std::uint32_t>(any_number());
  process.condition = static_cast<Condition>(below(9));
  process.stuck_in = static_cast<StuckIn>(below(6));
  process.wchan = any_bytes();
  process.kernel_frame = any_bytes();
  process.kernel_module = any_bytes();
  if (one_in(2)) process.login_uid = static_cast<uid_t>(any_number());
  if (one_in(3)) process.key.pidfd_inode = any_number();
  if (one_in(4)) process.named_parent = below(100000);
  for (auto& pipe : process.pipes) pipe.created_after_start = any_reading(any_figure());
}

/// A machine whose every field has been somebody's choice.
Snapshot any_recorded() {
  Snapshot s = any_snapshot();
  s.time = any_figure();
  s.host.hostname = any_bytes();
  s.driver.detail = any_bytes();
  for (auto& process : s.processes)
    if (one_in(2)) garble(process);
  for (auto& gpu : s.gpus) {
    gpu.name = any_bytes();
    gpu.persistence = any_reading(one_in(2));
    gpu.recovery_action = any_reading(static_cast<std::uint32_t>(any_number()));
    gpu.memory.free = any_reading(Bytes{any_number()});
    gpu.state = static_cast<GpuState>(below(4));
  }
  for (auto& node : s.nodes) node.inode = any_number();
  s.hidden_references.clear();  // what follows is in order by itself
  s.services.units.clear();
  s.containers.clear();
  for (int i = below(4); i > 0; --i)
    s.hidden_references.push_back({9 - i, static_cast<HiddenKind>(below(2)), below(9) - 1, 1, any_bytes()});
  s.services.answered = any_reading(one_in(2));
  for (int i = below(3); i > 0; --i)
    s.services.units.push_back(
        {"unit" + std::to_string(9 - i), any_bytes(), any_bytes(), below(9), any_bytes(), any_reading(any_figure())});
  for (int i = below(3); i > 0; --i)
    s.containers.push_back({std::to_string(9 - i), any_reading(one_in(2)), any_bytes()});
  s.visibility.blind_spots.push_back({"code", any_bytes()});
  return s;
}

void it_comes_back_bit_for_bit() {
  const Recording recording{any_recorded(), any_bytes(), one_in(2)};
  const std::string text = render_snapshot_json(recording);
  const auto read = parse_snapshot_json(text);
  if (!read) RC_FAIL(read.error().message);
  RC_ASSERT(*read == recording);
  RC_ASSERT(render_snapshot_json(*read) == text);
}

void same_snapshot_same_bytes() {
  const Recording recording{any_recorded(), "1", false};
  const Recording copy = recording;
  RC_ASSERT(render_snapshot_json(copy) == render_snapshot_json(recording));
}

/// A recording that somebody changed is refused or read; whatever is read goes through the pure stages.
void damage_is_survived() {
  std::string text = render_snapshot_json({any_recorded(), "1", false});
  for (int i = 1 + below(4); i > 0; --i) {
    const auto at = static_cast<std::size_t>(below(static_cast<int>(text.size())));
    static const std::string kBytes = "0123456789-,:{}[]\"\\ntf\xff";
    text[at] = kBytes[static_cast<std::size_t>(below(static_cast<int>(kBytes.size())))];
  }
  const auto read = parse_snapshot_json(text);
  if (!read) return;
  const auto attribution = attribute_holders(read->snapshot, Policy{});
  FreeRequest request;
  request.scope = Scope::all;
  RC_ASSERT(plan_free(read->snapshot, attribution, request).has_value());
}

struct Decided {
  pid_t pid;
  Action action;
  Ask ask;
  std::string rule;
  std::vector<unsigned> gpus;
  std::size_t reasons;
  bool operator==(const Decided&) const = default;
};

std::vector<Decided> decisions(const Snapshot& snapshot, const Attribution& attribution, Scope scope) {
  FreeRequest request;
  request.scope = scope;
  std::vector<Decided> decided;
  for (const auto& step : plan_free(snapshot, attribution, request).value_or(Plan{}).steps)
    decided.push_back({step.key.pid, step.action, step.ask, step.rule, step.gpus, step.because.size()});
  return decided;
}

/// How a blocker is stopped may end in a container, a job or a unit, which redaction replaces: each by one stand-in
/// that is no other's.
class Renaming {
 public:
  void require_same_way(const std::string& before, const std::string& after) {
    if (before == after) return;
    const auto at = before.rfind(' ') + 1;
    const auto original = before.substr(at);
    RC_ASSERT(before.starts_with("stop its container, ") || before.starts_with("end its job: scancel ") ||
              before.starts_with("stop its service: systemctl "));
    RC_ASSERT(before.substr(0, at) == after.substr(0, after.rfind(' ') + 1));
    const auto stand_in = after.substr(at);
    RC_ASSERT(stand_ins_.emplace(original, stand_in).first->second == stand_in);
    RC_ASSERT(originals_.emplace(stand_in, original).first->second == original);
  }

 private:
  std::map<std::string, std::string> stand_ins_, originals_;
};

void require_same_accounts(const std::vector<GpuAccount>& before, std::vector<GpuAccount> after) {
  RC_ASSERT(before.size() == after.size());
  Renaming renaming;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& blockers = before[i].reset_blockers;
    RC_ASSERT(blockers.size() == after[i].reset_blockers.size());
    for (std::size_t k = 0; k < blockers.size(); ++k) {
      auto& way = after[i].reset_blockers[k].way;
      renaming.require_same_way(blockers[k].way, way);
      way = blockers[k].way;
    }
  }
  RC_ASSERT(before == after);
}

void redaction_changes_no_decision() {
  const Snapshot original = any_snapshot();
  const Snapshot hidden = redacted(original);
  const auto before = attribute_holders(original, Policy{});
  const auto after = attribute_holders(hidden, Policy{});
  RC_ASSERT(before.holders.size() == after.holders.size());
  for (std::size_t i = 0; i < before.holders.size(); ++i) {
    const auto &a = before.holders[i], &b = after.holders[i];
    RC_ASSERT(a.key == b.key && a.standing == b.standing && a.role == b.role && a.group == b.group && a.gpus == b.gpus);
    RC_ASSERT(a.protection == b.protection && a.because.size() == b.because.size());
  }
  require_same_accounts(before.accounts, after.accounts);
  for (const auto scope : {Scope::leftovers, Scope::unsure, Scope::all})
    RC_ASSERT(decisions(original, before, scope) == decisions(hidden, after, scope));
}

void redaction_is_stable_and_leaves_nothing_private() {
  Snapshot s = any_recorded();
  s.host.hostname = "secretive";
  for (auto& process : s.processes) {
    process.kernel_thread = false;  // the kernel's own names are no secret
    process.exe = std::string("/home/secretive/bin/python3");
    process.argv = std::vector<std::string>{"/home/secretive/bin/python3", "--key=secretive", "secretive.py"};
    process.comm = "secretive";
    process.user = "secretive";
    process.cgroup = "/user.slice/secretive.slice/secretive@x.service/secretive";
  }
  const Snapshot hidden = redacted(s);
  const std::string text = render_snapshot_json({hidden, "1", true});
  RC_ASSERT(text.find("secretive") == std::string::npos);
  RC_ASSERT(text == render_snapshot_json({redacted(s), "1", true}));
  RC_ASSERT(parse_snapshot_json(text).has_value());
}

}  // namespace

int main() {
  return vacate::check_all({
      {"a recording comes back bit for bit", it_comes_back_bit_for_bit},
      {"the same snapshot gives the same bytes", same_snapshot_same_bytes},
      {"a damaged recording is refused or goes through every pure stage", damage_is_survived},
      {"redaction changes no standing and no plan", redaction_changes_no_decision},
      {"redaction is stable and leaves nothing private", redaction_is_stable_and_leaves_nothing_private},
  });
}
