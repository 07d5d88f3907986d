// SPDX-License-Identifier: Apache-2.0
// The table (docs/shm.md tells where each form is from). Forms are tried in order, so that the narrower of two comes
// first.
#include "attribute/shm_catalogue.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"

namespace vacate {
namespace {

using T = ShmTreatment;

struct Form {
  std::string_view pattern;
  std::string_view family;
  std::string_view software;
  std::string_view labels;  ///< of the places, between commas; "-": not worth saying
  T treatment = T::removable;
  std::string_view set = {};  ///< "$2" stands for the second place; empty: stands alone
  std::string_view note = {};
};

constexpr std::string_view kElsewhere = "it belongs to other software and is never touched";
constexpr std::string_view kRocm = "all ROCm processes of this machine share it, and it is made to stay";
constexpr std::string_view kUnclear = "what software makes files of this form, and when they are stale, is not known";

constexpr std::array kForms = {
    Form{"psm_%8h", "python", "Python shared_memory", "-"},
    Form{"wnsm_%x", "python", "Python shared_memory on Windows", "-", T::listed_only, {}, kUnclear},
    Form{"sem.mp-%8l", "python", "Python multiprocessing semaphore", "-"},
    Form{"pym-%p-%8l", "python", "Python multiprocessing heap", "creator pid,-"},
    Form{"sem.loky-%p-%8l", "loky", "loky semaphore", "creator pid,-"},
    Form{"joblib_memmapping_folder_%p_%w", "joblib", "joblib memory map", "parent pid,-"},
    Form{"torch_%p_%d_%d", "torch", "PyTorch", "creator pid,-,-"},
    Form{"torch_%p_%d", "torch", "PyTorch", "creator pid,-"},
    Form{"nccl-shm-recv-%x-%d-%d-%d", "nccl", "NCCL (older)", "communicator,channel,rank,peer rank"},
    Form{"nccl-shm-send-%x-%d-%d-%d", "nccl", "NCCL (older)", "communicator,channel,rank,peer rank"},
    Form{"nccl-%6a", "nccl", "NCCL", "-"},
    Form{"cuda.shm.%U.%P.%x", "cuda", "CUDA IPC", "uid,creator pid,-"},
    Form{"mps.shm.%u.%p",
         "mps",
         "CUDA MPS",
         "uid,creator pid",
         T::listed_only,
         {},
         "MPS makes these without a name: a file of this form is not its"},
    Form{"vllm_offload_%n.mmap", "vllm", "vLLM offload", "engine"},
    Form{"VLLM_OBJECT_STORAGE_SHM_BUFFER", "vllm", "vLLM object store", ""},
    Form{"vllm-%s", "vllm", "vLLM, perhaps", "-", T::listed_only, {}, kUnclear},
    Form{"vllm_%s", "vllm", "vLLM, perhaps", "-", T::listed_only, {}, kUnclear},
    Form{"sgl_shm_%w_%p_%8h", "sglang", "SGLang", "kind,creator pid,-"},
    Form{"multi_tokenizer_args_%p", "sglang", "SGLang", "creator pid"},
    Form{"sglang_loads_%n.shm", "sglang", "SGLang load snapshot", "-"},
    Form{"smg-tokenspeed-%n", "sglang", "SGLang gateway", "-"},
    Form{"triton_python_backend_shm_region_%i", "triton", "Triton Python backend", "-"},
    Form{"triton_python_backend_shm_region_%d", "triton", "Triton Python backend (older)", "-"},
    Form{"plasma%6a", "ray", "Ray object store", "-"},
    Form{"vader_segment.%n.%x.%d", "openmpi", "Open MPI 2 to 4", "host,job,rank", T::removable, "vader $1 $2"},
    Form{"vader_segment.%n.%d", "openmpi", "Open MPI 2", "host,rank", T::removable, "vader $1"},
    Form{"sm_segment.%n.%u.%x.%d", "openmpi", "Open MPI 5", "host,uid,job,rank", T::removable, "sm $1 $2 $3"},
    Form{"open_mpi.%4d", "openmpi", "Open MPI", "-"},
    Form{"ucx_shm_posix_%x", "ucx", "UCX", "segment"},
    Form{"psm2_shm.%n", "psm", "PSM2", "-"},
    Form{"psm3_shm.%u.%n", "psm", "PSM3", "uid,-", T::removable, "psm3"},
    Form{"psm3_shm.%n", "psm", "PSM3", "-", T::removable, "psm3"},
    Form{"psm3_nic_affinity%n", "psm", "PSM3", "-", T::removable, "psm3"},
    Form{"psm3_nic_affinity", "psm", "PSM3", "", T::removable, "psm3"},
    Form{"sem.psm3_nic_affinity%n", "psm", "PSM3 semaphore", "-", T::removable, "psm3"},
    Form{"sem.psm3_nic_affinity", "psm", "PSM3 semaphore", "", T::removable, "psm3"},
    Form{"nvshmem-shm%n", "nvshmem", "NVSHMEM", "-"},
    Form{"hsakmt_shared_mem", "rocm", "ROCm", "", T::never, {}, kRocm},
    Form{"sem.hsakmt_semaphore", "rocm", "ROCm", "", T::never, {}, kRocm},
    Form{".vacate-%p-%d", "vacate", "vacate, on its way out", "pid of vacate,-"},
    Form{"pulse-shm-%s", "pulseaudio", "PulseAudio", "-", T::never, {}, kElsewhere},
    Form{"mono.%p", "mono", "Mono", "creator pid", T::never, {}, kElsewhere},
    Form{"PostgreSQL.%s", "postgresql", "PostgreSQL", "-", T::never, {}, kElsewhere},
    Form{".com.google.%s", "chrome", "Chrome", "-", T::never, {}, kElsewhere},
    Form{".org.chromium.%s", "chrome", "Chromium", "-", T::never, {}, kElsewhere},
    Form{"lttng-%s", "lttng", "LTTng", "-", T::never, {}, kElsewhere},
    Form{"wayland%s", "wayland", "Wayland", "-", T::never, {}, kElsewhere},
};

constexpr std::string_view kHuge = "huge pages are listed only";
constexpr std::array kHugeForms = {
    Form{"spdk_pid%pmap_%d", "dpdk", "SPDK", "creator pid,-", T::never, {}, kHuge},
    Form{"rtemap_%d", "dpdk", "DPDK", "-", T::never, {}, kHuge},
    Form{"%smap_%d", "dpdk", "DPDK", "prefix,-", T::never, {}, kHuge},
};

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) noexcept { return is_digit(c) || is_letter(c) || c == '_'; }

bool accepts(char kind, char c) noexcept {
  switch (kind) {
    case 'd':
    case 'p':
    case 'u':
      return is_digit(c);
    case 'x':
    case 'P':
    case 'U':
      return is_hex(c);
    case 'h':
      return is_hex(c) && !is_upper(c);
    case 'a':
      return is_digit(c) || is_letter(c);
    case 'w':
      return is_word(c);
    case 'l':
      return is_word(c) && !is_upper(c);
    case 'n':
      return is_word(c) || c == '-' || c == '.';
    case 'i':
      return is_hex(c) || c == '-';
    default:
      return true;
  }
}

bool is_uuid(std::string_view text) noexcept {
  static constexpr std::string_view kShape = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kShape[i] == '-' ? text[i] != '-' : !is_hex(text[i])) return false;
  return true;
}

/// A place of a pattern: "%8x".
struct Place {
  char kind = 's';
  std::size_t exactly = 0;  ///< 0: any number
  std::size_t length = 0;   ///< of its text in the pattern
};

Place place_at(std::string_view pattern) noexcept {
  Place place;
  std::size_t at = 1;
  while (at < pattern.size() && is_digit(pattern[at]))
    place.exactly = place.exactly * 10 + static_cast<std::size_t>(pattern[at++] - '0');
  if (at < pattern.size()) place.kind = pattern[at++];
  place.length = at;
  return place;
}

std::optional<pid_t> pid_of(std::string_view digits, char kind) noexcept {
  static constexpr std::uint64_t kLargest = std::uint64_t{1} << 22U;  // PID_MAX_LIMIT
  const auto number = kind == 'P' ? parse_hex(digits) : parse_unsigned(digits);
  if (!number || digits.starts_with('0') || *number > kLargest) return std::nullopt;
  return static_cast<pid_t>(*number);
}

/// Kinds of the places of `pattern`, in order.
std::string kinds_of(std::string_view pattern) {
  std::string kinds;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      ++at;
      continue;
    }
    const auto place = place_at(pattern.substr(at));
    kinds += place.kind;
    at += place.length;
  }
  return kinds;
}

std::string set_of(std::string_view form, const std::vector<std::string_view>& pieces) {
  std::string set;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_place = form[i] == '$' && i + 1 < form.size();
    if (!is_place) {
      set += form[i];
      continue;
    }
    const auto index = static_cast<std::size_t>(form[++i] - '1');
    if (index < pieces.size()) set += pieces[index];
  }
  return set;
}

ShmName name_of(const Form& form, const std::vector<std::string_view>& pieces) {
  ShmName name;
  name.family = form.family;
  name.software = form.software;
  name.treatment = form.treatment;
  name.note = form.note;
  name.set = set_of(form.set, pieces);
  name.by_resource_tracker = form.family == "python" || form.family == "loky" || form.family == "joblib";
  const auto labels = split(form.labels, ',');
  const auto kinds = kinds_of(form.pattern);
  for (std::size_t i = 0; i < pieces.size() && i < kinds.size(); ++i) {
    const bool is_pid = kinds[i] == 'p' || kinds[i] == 'P';
    const auto pid = is_pid ? pid_of(pieces[i], kinds[i]) : std::nullopt;
    if (pid) name.creator = pid;
    if (i >= labels.size() || labels[i] == "-" || labels[i].empty()) continue;
    std::string value(pieces[i]);
    if (pid) value = std::to_string(*pid);
    if (const auto uid = kinds[i] == 'U' ? parse_hex(pieces[i]) : std::nullopt) value = std::to_string(*uid);
    name.encodes.push_back(std::string(labels[i]) + " " + value);
  }
  return name;
}

template <class Forms>
std::optional<ShmName> recognise(const Forms& forms, std::string_view name) {
  std::vector<std::string_view> pieces;
  for (const auto& form : forms)
    if (matches_shm_pattern(form.pattern, name, pieces)) return name_of(form, pieces);
  return std::nullopt;
}

}  // namespace

bool matches_shm_pattern(std::string_view pattern, std::string_view name, std::vector<std::string_view>& pieces) {
  const auto known = pieces.size();
  const auto literal = std::min(pattern.find('%'), pattern.size());
  if (name.substr(0, literal) != pattern.substr(0, literal)) return false;
  pattern.remove_prefix(literal);
  name.remove_prefix(std::min(literal, name.size()));
  if (pattern.empty()) return name.empty();
  const auto place = place_at(pattern);
  const auto rest = pattern.substr(place.length);
  std::size_t longest = 0;
  while (longest < name.size() && accepts(place.kind, name[longest])) ++longest;
  if (place.exactly != 0 && place.exactly > longest) return false;
  const std::size_t most = place.exactly != 0 ? place.exactly : longest;
  const std::size_t fewest = place.exactly != 0 ? place.exactly : 1;
  for (std::size_t length = most; length >= fewest && length > 0; --length) {
    const auto piece = name.substr(0, length);
    if (place.kind == 'i' && !is_uuid(piece)) continue;
    if ((place.kind == 'p' || place.kind == 'P') && !pid_of(piece, place.kind)) continue;
    pieces.resize(known);
    pieces.push_back(piece);
    if (matches_shm_pattern(rest, name.substr(length), pieces)) return true;
  }
  pieces.resize(known);
  return false;
}

std::optional<ShmName> recognise_shm(std::string_view name) {
  const auto slash = name.find('/');
  auto known = recognise(kForms, name.substr(0, slash));
  if (known) known->is_folder = known->family == "joblib";
  if (slash == std::string_view::npos) return known;
  // Joblib dumps arrays there, and nothing else; whatever is never touched is not touched there either.
  const auto file = name.substr(slash + 1);
  auto below = recognise(kForms, file);
  if (below && below->treatment == T::never) return below;
  if (!known || !known->is_folder || !file.ends_with(".pkl") || file.size() == 4) return std::nullopt;
  known->is_folder = false;
  return known;
}

std::optional<ShmName> recognise_huge_page_file(std::string_view name) { return recognise(kHugeForms, name); }

std::vector<std::string> shm_families() {
  std::set<std::string> families;
  for (const auto& form : kForms) families.emplace(form.family);
  for (const auto& form : kHugeForms) families.emplace(form.family);
  return {families.begin(), families.end()};
}

}  // namespace vacate
