// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_session.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "gpu/device_nodes.h"
#include "gpu/nvml_sample.h"
#include "gpu/proc_driver.h"
#include "gpu/sample_codec.h"
#include "os/expendable.h"
#include "os/frame.h"

namespace vacate {
namespace {

constexpr std::string_view kRequest = "S";
constexpr std::size_t kLargestSample = std::size_t{64} << 20U;

DriverSample ask_module() {
  const auto module = read_proc_driver();
  DriverSample sample;
  sample.driver.state = module.present ? DriverState::ok : DriverState::absent;
  sample.driver.version = module.version;
  sample.gpus = module.gpus;
  return sample;
}

/// The child. It says unasked what the module says in /proc, because the library may never come back from being loaded,
/// and answers each request with two frames: the module's word once more, then the library's. Reading the module's
/// files takes the driver's locks too, so it happens here and not in vacate.
int serve_driver(int channel) {
  if (!send_frame(channel, encode_sample(ask_module()))) return 1;
  nvml::Sampler sampler;
  sampler.warm_up();
  char request = 0;
  for (;;) {
    const ssize_t n = recv(channel, &request, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (!send_frame(channel, encode_sample(ask_module()))) return 1;
    if (!send_frame(channel, encode_sample(sampler.sample()))) return 1;
  }
  sampler.shut_down();
  return 0;
}

/// What came of one request.
struct Answers {
  DriverSample module;  ///< as far as it came
  DriverSample library;
  bool timed_out = false;
};

std::string describe_end(std::optional<int> status) {
  if (status && WIFSIGNALED(*status)) {
    const char* name = sigabbrev_np(WTERMSIG(*status));
    return std::string("the driver's library ended its process with SIG") + (name != nullptr ? name : "?");
  }
  return "the driver's library ended its process";
}

void note_blind_spot(DriverSample& sample) {
  const char* code = nullptr;
  switch (sample.driver.state) {
    case DriverState::ok:
    case DriverState::absent:
      return;
    case DriverState::not_loaded:
      code = "driver-not-loaded";
      break;
    case DriverState::mismatch:
      code = "driver-mismatch";
      break;
    case DriverState::denied:
      code = "driver-denied";
      break;
    case DriverState::no_answer:
      code = "driver-no-answer";
      break;
  }
  sample.blind_spots.push_back({code, sample.driver.detail});
}

/// One sample of both answers: the module's list fills what the library does not say, or stands in for it.
DriverSample combine(Answers answers) {
  DriverSample sample = std::move(answers.library);
  const bool has_module = answers.module.driver.state == DriverState::ok;
  const auto nodes = DeviceNodes::read();
  const bool has_nodes = has_module || nodes.has_driver() || !nodes.complete();
  auto& driver = sample.driver;
  // No library is no driver only where nothing else of one is there either.
  if (driver.state == DriverState::absent && has_nodes) driver.state = DriverState::no_answer;
  if (driver.version.empty()) driver.version = answers.module.driver.version;
  if (driver.state == DriverState::ok) {
    complete_from(answers.module.gpus, sample.gpus);
  } else {
    sample.gpus = std::move(answers.module.gpus);
    const Unknown why = answers.timed_out                     ? Unknown::timed_out
                        : driver.state == DriverState::denied ? Unknown::no_permission
                                                              : Unknown::failed;
    for (auto& gpu : sample.gpus) {
      gpu.state = GpuState::no_answer;
      gpu.memory = {why, why, why, why};
      gpu.persistence = why;
      gpu.recovery_action = why;
      gpu.utilization = why;
      gpu.mig = why;
    }
    if (driver.state != DriverState::not_loaded || has_nodes) note_blind_spot(sample);
  }
  std::sort(sample.blind_spots.begin(), sample.blind_spots.end());
  return sample;
}

}  // namespace

struct DriverSession::Impl {
  std::optional<Expendable> child;
  bool abandoned = false;           ///< one child is stuck already: there will be no second
  std::optional<Expendable> stuck;  ///< that child, until it is known to have ended
  bool greeted = false;             ///< the child has said what it says unasked
  DriverSample module;              ///< the module's last word: true also when nobody answers any more

  [[nodiscard]] Answers ask(Deadline deadline);
  Result<void> hear_module(FrameStream& stream, Deadline deadline);
  [[nodiscard]] Result<DriverSample> converse(Deadline deadline);
  [[nodiscard]] Result<DriverSample> receive(FrameStream& stream, Deadline deadline);
  void fail(Answers& answers, const Error& error);
};

Result<DriverSample> DriverSession::Impl::receive(FrameStream& stream, Deadline deadline) {
  std::array<char, 16384> piece;
  for (;;) {
    if (const auto frame = stream.next()) return decode_sample(*frame);
    if (stream.malformed()) return Error{ErrorCode::malformed, "the driver child sent bytes that make no sense"};
    const auto n = child->read_some(piece.data(), piece.size(), deadline);
    if (!n) return n.error();
    if (*n == 0) return Error{ErrorCode::gone, ""};
    stream.feed({piece.data(), *n});
  }
}

void DriverSession::Impl::fail(Answers& answers, const Error& error) {
  static constexpr std::chrono::milliseconds kReap{200};  // its socket is closed: it is on its way out
  auto& driver = answers.library.driver;
  driver.state = DriverState::no_answer;
  driver.detail = error.message;
  if (error.code == ErrorCode::timed_out) {
    answers.timed_out = true;
    abandoned = true;
    driver.detail = "the driver does not answer";
    if (child && !child->end_at_once()) stuck = std::move(child);
  } else if (error.code == ErrorCode::gone && child) {
    driver.detail = describe_end(child->wait(Deadline::after(kReap)));
  }
  child.reset();
}

Result<void> DriverSession::Impl::hear_module(FrameStream& stream, Deadline deadline) {
  auto said = receive(stream, deadline);
  if (!said) return said.error();
  module = *std::move(said);
  greeted = true;
  return {};
}

/// What the library says; the module's word is kept as soon as it comes.
Result<DriverSample> DriverSession::Impl::converse(Deadline deadline) {
  FrameStream stream(kLargestSample);
  if (!greeted) {
    if (const auto heard = hear_module(stream, deadline); !heard) return heard.error();
  }
  if (const auto sent = child->write_all(kRequest, deadline); !sent) return sent.error();
  if (const auto heard = hear_module(stream, deadline); !heard) return heard.error();
  return receive(stream, deadline);
}

Answers DriverSession::Impl::ask(Deadline deadline) {
  Answers answers;
  if (abandoned) {
    fail(answers, Error{ErrorCode::timed_out, ""});
    answers.module = module;
    return answers;
  }
  if (!child) {
    auto started = Expendable::start("vacate-driver", serve_driver);
    if (!started) {
      fail(answers, started.error().within("driver child"));
      answers.module = module;
      return answers;
    }
    child.emplace(*std::move(started));
    greeted = false;
  }
  auto library = converse(deadline);
  if (library) {
    answers.library = *std::move(library);
  } else {
    fail(answers, library.error());
  }
  answers.module = module;
  return answers;
}

Result<DriverSession> DriverSession::start() {
  auto impl = std::make_unique<Impl>();
  auto child = Expendable::start("vacate-driver", serve_driver);
  if (!child) return child.error().within("driver child");
  impl->child.emplace(*std::move(child));
  return DriverSession(std::move(impl));
}

DriverSession::DriverSession(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DriverSession::DriverSession(DriverSession&&) noexcept = default;
DriverSession& DriverSession::operator=(DriverSession&&) noexcept = default;
DriverSession::~DriverSession() = default;

DriverSample DriverSession::sample(Deadline deadline) { return combine(impl_->ask(deadline)); }

void DriverSession::revive() noexcept {
  if (!impl_->abandoned || (impl_->stuck && !impl_->stuck->end_at_once())) return;
  impl_->stuck.reset();
  impl_->abandoned = false;
}

void DriverSession::close(Deadline deadline) noexcept {
  // Closing the channel is the request to end: the child shuts the library down first.
  if (impl_->child && !impl_->child->wait(deadline)) {
    impl_->abandoned = true;
    if (!impl_->child->end_at_once()) impl_->stuck = std::move(impl_->child);
  }
  impl_->child.reset();
}

pid_t DriverSession::child() const noexcept { return impl_->child ? impl_->child->pid() : -1; }

}  // namespace vacate
