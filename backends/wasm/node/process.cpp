// The child process and its socket. A socket, not pipes: writing to one whose reader has gone is an
// error there, and not a signal.
#include "backends/wasm/node/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "backends/wasm/node/driver.inc"
#include "ir/support/diag_codes.h"

extern char** environ;

namespace lathe::wasm {
namespace {

enum Kind : uint32_t { kLoad = 1, kWrite, kCall, kRead, kSteps, kGrow };
constexpr int kLeastVersion = 18;
constexpr uint32_t kMostText = 1 << 20;
constexpr std::chrono::minutes kLongestAnswer{5};

Diag unavailable(std::string message) {
  return Diag{.code = code::kUnavailable, .loc = Loc::unknown(), .message = std::move(message)};
}

Diag system_error(const char* what) {
  return unavailable(fmt::format("{} for node failed: {}", what, std::strerror(errno)));
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

NodeProcess::~NodeProcess() {
  if (socket_ >= 0) close(socket_);
  if (errors_ >= 0) close(errors_);
  stop();
}

void NodeProcess::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);  // it holds nothing that wants to be put away
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Result<std::unique_ptr<NodeProcess>> NodeProcess::start(const std::vector<std::string>& options) {
  auto process = std::make_unique<NodeProcess>();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("socketpair");
  process->socket_ = ends[0];
  LATHE_DO(process->set_limit(kLongestAnswer));
  process->errors_ = memfd_create("node-stderr", MFD_CLOEXEC);

  std::vector<std::string> words = {"node"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--input-type=module", "--eval", kDriver});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (process->errors_ >= 0)
    posix_spawn_file_actions_adddup2(&actions, process->errors_, STDERR_FILENO);
  int failure = posix_spawnp(&process->pid_, "node", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure == ENOENT)
    return unavailable(fmt::format(
        "no 'node' on PATH, expected Node {} or newer, which runs the wasm target", kLeastVersion));
  errno = failure;
  if (failure != 0) return system_error("posix_spawn");
  LATHE_DO(process->greet());
  return process;
}

Status NodeProcess::greet() {
  LATHE_TRY(uint32_t size, answer_size());
  std::string hello(std::min(size, kMostText), ' ');
  LATHE_DO(receive(std::as_writable_bytes(std::span(hello))));
  size_t space = hello.find(' ');
  version_ = hello.substr(0, space);
  has_relaxed_simd_ = space != std::string::npos && hello.substr(space) == " 1";
  int major = 0;
  for (char c : version_) {
    if (c < '0' || c > '9') break;
    major = std::min(10 * major + (c - '0'), 100'000);
  }
  if (major < kLeastVersion)
    return unavailable(fmt::format("node is {}, expected {} or newer", version_, kLeastVersion));
  return Ok{};
}

Status NodeProcess::set_limit(std::chrono::milliseconds limit) {
  limit_ = limit;
  timeval time = {.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  if (setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0)
    return system_error("setsockopt");
  return Ok{};
}

Diag NodeProcess::gone() {
  const bool is_late = errno == EAGAIN || errno == EWOULDBLOCK;
  is_sound_ = false;
  if (is_late) {
    stop();
    return unavailable(fmt::format("node gave no answer within {} s", limit_.count() / 1e3));
  }
  std::string said(4096, ' ');
  ssize_t count = errors_ >= 0 ? pread(errors_, said.data(), said.size(), 0) : 0;
  said.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  return unavailable("node ended early" + (said.empty() ? "" : ": " + said));
}

Status NodeProcess::send(Bytes bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return gone();
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Ok{};
}

Status NodeProcess::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    errno = 0;  // the end of the stream sets none
    ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return gone();
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return Ok{};
}

Status NodeProcess::request(uint32_t kind, Bytes head, Bytes rest) {
  if (head.size() + rest.size() > UINT32_MAX)
    return Diag{.code = code::kTooLarge,
                .loc = Loc::unknown(),
                .message = "more than 4 GiB for one request to node"};
  uint32_t frame[2] = {kind, static_cast<uint32_t>(head.size() + rest.size())};
  LATHE_DO(send(std::as_bytes(std::span(frame))));
  LATHE_DO(send(head));
  return send(rest);
}

Result<uint32_t> NodeProcess::answer_size() {
  uint32_t frame[2];
  LATHE_DO(receive(std::as_writable_bytes(std::span(frame))));
  if (frame[0] == 0) return frame[1];
  std::string text(std::min(frame[1], kMostText), ' ');
  LATHE_DO(receive(std::as_writable_bytes(std::span(text))));
  is_sound_ = false;
  return internal_error("node says: " + text, __FILE__, __LINE__);
}

Status NodeProcess::answer(std::span<std::byte> bytes) {
  LATHE_TRY(uint32_t size, answer_size());
  is_sound_ = is_sound_ && size == bytes.size();
  LATHE_CHECK(size == bytes.size(), "node answered with a wrong number of bytes");
  return receive(bytes);
}

Status NodeProcess::load(const std::string& module, uint32_t num_pages) {
  num_pages_ = num_pages;
  LATHE_DO(request(kLoad, bytes_of(num_pages), std::as_bytes(std::span(module))));
  return answer({});
}

Status NodeProcess::grow(uint32_t num_pages) {
  if (num_pages <= num_pages_) return Ok{};
  LATHE_DO(request(kGrow, bytes_of(num_pages - num_pages_), {}));
  LATHE_DO(answer({}));
  num_pages_ = num_pages;
  return Ok{};
}

Status NodeProcess::write(uint32_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  LATHE_DO(request(kWrite, bytes_of(address), bytes));
  return answer({});
}

Result<double> NodeProcess::call(const std::string& function,
                                 const std::vector<int32_t>& arguments) {
  std::vector<int32_t> words = {static_cast<int32_t>(arguments.size())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  LATHE_DO(request(kCall, std::as_bytes(std::span(words)), std::as_bytes(std::span(function))));
  double milliseconds = 0;
  LATHE_DO(answer(std::as_writable_bytes(std::span(&milliseconds, 1))));
  return milliseconds;
}

Status NodeProcess::read(uint32_t address, std::span<std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  uint32_t words[2] = {address, static_cast<uint32_t>(bytes.size())};
  LATHE_DO(request(kRead, std::as_bytes(std::span(words)), {}));
  return answer(bytes);
}

Result<std::vector<double>> NodeProcess::steps(size_t count) {
  LATHE_DO(request(kSteps, bytes_of(static_cast<uint32_t>(count)), {}));
  std::vector<double> milliseconds(count);
  LATHE_DO(answer(std::as_writable_bytes(std::span(milliseconds))));
  return milliseconds;
}

namespace {

// Code runs as fast as it gets from its first call, and relaxed SIMD is there in versions that
// still hide it. Versions that have dropped an option refuse to start with it.
Result<NodeInfo> probe() {
  const std::vector<std::string> choices[] = {
      {"--no-liftoff", "--experimental-wasm-relaxed-simd"}, {"--no-liftoff"}, {}};
  Diag failure;
  for (const auto& options : choices) {
    auto process = NodeProcess::start(options);
    if (process.ok())
      return NodeInfo{(*process)->version(), (*process)->has_relaxed_simd(), options};
    failure = std::move(process).error();
  }
  return failure;
}

}  // namespace

Result<NodeInfo> node_info() {
  static const Result<NodeInfo> kInfo = probe();
  return kInfo;
}

}  // namespace lathe::wasm
