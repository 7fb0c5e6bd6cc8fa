// Threads of one job, of which the system may refuse any: the caller then does the work with those
// that it has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace lathe {

class Threads {
 public:
  Threads();
  ~Threads();  // waits for all
  Threads(const Threads&) = delete;

  // How many run at once on this machine; 1 in WebAssembly, where none can be started.
  static int64_t at_once();

  size_t size() const { return threads_.size(); }
  // False when the system refuses one: it has too many, or no memory for its stack.
  [[nodiscard]] bool start(std::function<void()> body);
  // Waits for all. What operator new threw in one goes on here.
  void join();
  // Waits for none: in a child of fork they do not run.
  void forget();

 private:
  struct Thread;
  void wait();
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace lathe
