// Children and their pipes (see workers.h). A child writes "verdict INDEX KIND TEXT" lines, then
// "cover COUNT WHAT" lines, then "end".
#include "tests/random/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace lathe::random_graphs {
namespace {

using Clock = std::chrono::steady_clock;
using Judge = std::function<Verdict(uint64_t, Coverage&)>;

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = write(fd, text.data() + at, text.size() - at);
    if (count <= 0) _exit(2);  // nobody reads any more
    at += static_cast<size_t>(count);
  }
}

[[noreturn]] void be_child(int fd, uint64_t first, uint64_t end, const Judge& judge) {
  Coverage coverage;
  for (uint64_t i = first; i < end; ++i) {
    const Verdict verdict = judge(i, coverage);
    std::string text = verdict.text;
    std::replace(text.begin(), text.end(), '\n', ' ');
    write_all(fd, fmt::format("verdict {} {} {}\n", i, static_cast<int>(verdict.kind), text));
  }
  for (const auto& [what, count] : coverage)
    write_all(fd, fmt::format("cover {} {}\n", count, what));
  write_all(fd, "end\n");
  exit(0);  // runs destructors: Node processes of this child end with it
}

struct Child {
  pid_t pid = 0;
  int fd = -1;
  uint64_t next = 0;  // the index that it judges now
  uint64_t end = 0;
  Clock::time_point last = Clock::now();
  double seconds_at_last = 0;  // of the processor, then
  std::string unread = {};
  bool has_ended = false;
};

// Of the processor: a busy machine makes no judgement hang.
double seconds_of(const Child& child) {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(child.pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool has_lost_patience(const Child& child, int patience_s) {
  constexpr int kIdle = 10;  // times as long for one that waits
  return seconds_of(child) - child.seconds_at_last > patience_s ||
         Clock::now() - child.last > std::chrono::seconds(kIdle * patience_s);
}

class Pool {
 public:
  Pool(const WorkOptions& options, const Judge& judge,
       const std::function<bool(uint64_t, const Verdict&)>& on_verdict)
      : options_(options), judge_(judge), on_verdict_(on_verdict) {}

  Coverage run() {
    uint64_t next = options_.first;
    const uint64_t end = options_.first + options_.count;
    while (!stopped_ && (next < end || !children_.empty())) {
      while (next < end && children_.size() < static_cast<size_t>(std::max(1, options_.jobs))) {
        const uint64_t batch_end = std::min(end, next + options_.batch);
        start(next, batch_end);
        next = batch_end;
      }
      wait_for_some();
      for (auto child = children_.begin(); child != children_.end();)
        child = serve(*child) ? std::next(child) : children_.erase(child);
    }
    for (Child& child : children_) finish(child, true);
    return std::move(coverage_);
  }

 private:
  void start(uint64_t first, uint64_t end) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      stopped_ = true;
      return;
    }
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      be_child(ends[1], first, end, judge_);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    children_.push_back({.pid = pid, .fd = ends[0], .next = first, .end = end});
  }

  void wait_for_some() {
    std::vector<pollfd> fds;
    for (const Child& child : children_) fds.push_back({child.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), 1000);
  }

  void read_line(Child& child, const std::string& line) {
    if (line == "end") child.has_ended = true;
    if (line.rfind("cover ", 0) == 0) {
      const size_t space = line.find(' ', 6);
      coverage_[line.substr(space + 1)] += std::stoll(line.substr(6, space - 6));
    }
    if (line.rfind("verdict ", 0) != 0) return;
    const size_t after_index = line.find(' ', 8), after_kind = line.find(' ', after_index + 1);
    Verdict verdict;
    verdict.kind = static_cast<Verdict::Kind>(
        std::stoi(line.substr(after_index + 1, after_kind - after_index - 1)));
    verdict.text = line.substr(after_kind + 1);
    report(child.next++, verdict);
    child.last = Clock::now();
    child.seconds_at_last = seconds_of(child);
  }

  void report(uint64_t index, const Verdict& verdict) {
    if (!stopped_ && !on_verdict_(index, verdict)) stopped_ = true;
  }

  // False when the child is gone; a batch that it left unfinished goes on behind what ended it.
  bool serve(Child& child) {
    char buffer[4096];
    ssize_t count = 0;
    while ((count = read(child.fd, buffer, sizeof buffer)) > 0)
      child.unread.append(buffer, static_cast<size_t>(count));
    for (size_t end; (end = child.unread.find('\n')) != std::string::npos;) {
      read_line(child, child.unread.substr(0, end));
      child.unread.erase(0, end + 1);
    }
    const bool hangs = has_lost_patience(child, options_.patience_s);
    if (count != 0 && !hangs) return true;
    const int status = finish(child, hangs);
    if (child.has_ended || child.next >= child.end) return false;
    report(child.next, hangs ? Verdict{Verdict::Kind::hangs, "no answer in time"}
                             : Verdict{Verdict::Kind::crashes, describe(status)});
    if (child.next + 1 < child.end && !stopped_) start(child.next + 1, child.end);
    return false;
  }

  static std::string describe(int status) {
    if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
    return fmt::format("exit code {}", WEXITSTATUS(status));
  }

  int finish(Child& child, bool kills) {
    if (kills) kill(child.pid, SIGKILL);
    close(child.fd);
    int status = 0;
    waitpid(child.pid, &status, 0);
    return status;
  }

  const WorkOptions& options_;
  const Judge& judge_;
  const std::function<bool(uint64_t, const Verdict&)>& on_verdict_;
  std::list<Child> children_;
  Coverage coverage_;
  bool stopped_ = false;
};

}  // namespace

Coverage work(const WorkOptions& options, const Judge& judge,
              const std::function<bool(uint64_t, const Verdict&)>& on_verdict) {
  return Pool(options, judge, on_verdict).run();
}

Verdict judge_apart(const std::function<Verdict()>& judge) {
  Verdict result;
  work(
      {}, [&](uint64_t, Coverage&) { return judge(); },
      [&](uint64_t, const Verdict& verdict) {
        result = verdict;
        return true;
      });
  return result;
}

}  // namespace lathe::random_graphs
