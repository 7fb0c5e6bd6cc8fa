// Threads of POSIX: std::thread reports a failure by an exception alone.
#include "ir/threads/threads.h"

#include <utility>

#ifndef __wasm__
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>
#endif

namespace lathe {

#ifdef __wasm__

struct Threads::Thread {};
int64_t Threads::at_once() { return 1; }
bool Threads::start(std::function<void()>) { return false; }
void Threads::join() {}
void Threads::wait() {}

#else

struct Threads::Thread {
  pthread_t id = {};
  std::function<void()> body;
  std::exception_ptr error = nullptr;

  static void* run(void* self) {
    auto* thread = static_cast<Thread*>(self);
    try {
      thread->body();
    } catch (...) {
      thread->error = std::current_exception();
    }
    return nullptr;
  }
};

int64_t Threads::at_once() { return std::max(1u, std::thread::hardware_concurrency()); }

bool Threads::start(std::function<void()> body) {
  threads_.push_back(std::make_unique<Thread>());
  Thread& thread = *threads_.back();
  thread.body = std::move(body);
  if (pthread_create(&thread.id, nullptr, Thread::run, &thread) == 0) return true;
  threads_.pop_back();
  return false;
}

void Threads::wait() {
  for (const auto& thread : threads_) pthread_join(thread->id, nullptr);
}

void Threads::join() {
  wait();
  const auto ended = std::exchange(threads_, {});
  for (const auto& thread : ended)
    if (thread->error) std::rethrow_exception(thread->error);
}

#endif

Threads::Threads() = default;
Threads::~Threads() { wait(); }
void Threads::forget() { threads_.clear(); }

}  // namespace lathe
