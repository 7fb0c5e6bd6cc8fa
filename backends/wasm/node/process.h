// A Node process that runs modules, one at a time, by the requests that driver.mjs describes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lathe::wasm {

class NodeProcess {
 public:
  NodeProcess() = default;
  NodeProcess(const NodeProcess&) = delete;
  ~NodeProcess();  // ends the process

  // Starts the `node` of PATH with these options and waits for its first answer. An error says
  // whether there is no node, it is too old, or what it said.
  static Result<std::unique_ptr<NodeProcess>> start(const std::vector<std::string>& options);

  const std::string& version() const { return version_; }
  bool has_relaxed_simd() const { return has_relaxed_simd_; }

  int pid() const { return pid_; }
  // Whether every request was answered, and with what it asked for.
  bool is_sound() const { return is_sound_; }
  uint32_t num_pages() const { return num_pages_; }  // of memory

  // The longest time that an answer may take: five minutes unless it is set. Then the process ends.
  Status set_limit(std::chrono::milliseconds limit);

  // In place of the module before it, whose memory is gone.
  Status load(const std::string& module, uint32_t num_pages);
  Status grow(uint32_t num_pages);  // to at least so many
  Status write(uint32_t address, std::span<const std::byte> bytes);
  // Milliseconds it took. A trap is an error.
  Result<double> call(const std::string& function, const std::vector<int32_t>& arguments = {});
  Status read(uint32_t address, std::span<std::byte> bytes);
  Result<std::vector<double>> steps(size_t count);  // milliseconds of each

 private:
  using Bytes = std::span<const std::byte>;
  Status send(Bytes bytes);
  Status receive(std::span<std::byte> bytes);
  Status request(uint32_t kind, Bytes head, Bytes rest);
  // The answer's bytes must be as many as `bytes` has room for.
  Status answer(std::span<std::byte> bytes);
  Result<uint32_t> answer_size();
  Status greet();
  Diag gone();  // with what it wrote to standard error, or that it took too long
  void stop();

  int socket_ = -1;
  int errors_ = -1;  // a file in memory that takes its standard error
  int pid_ = -1;
  bool is_sound_ = true;
  uint32_t num_pages_ = 0;
  std::chrono::milliseconds limit_{};
  std::string version_;
  bool has_relaxed_simd_ = false;
};

// What the Node of this machine can do, found out once.
struct NodeInfo {
  std::string version;
  bool has_relaxed_simd = false;
  std::vector<std::string> options;  // for start
};
Result<NodeInfo> node_info();

}  // namespace lathe::wasm
