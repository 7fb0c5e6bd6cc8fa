// Runs a fuzz target on seeded mutations of valid inputs:
//   text_fuzz [--seconds N] [--runs N] [--seed S] [--only NUMBER [--save FILE]] FILE_OR_FOLDER ...
//
// The target is LLVMFuzzerTestOneInput, as for libFuzzer, which can be linked instead
// (--config=libfuzzer). A crash, a sanitizer's complaint, an input that takes over 10 s of the
// processor, or more memory than it may (harness.cpp), ends the run and prints the command that
// repeats it.
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace lathe::fuzz {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kSecondsPerInput = 10;

struct Options {
  double seconds = 10;
  uint64_t runs = ~0ull;
  uint64_t seed = 1;
  bool has_only = false;
  uint64_t only = 0;
  std::string save;
  std::vector<fs::path> paths;
};

// The run that a signal interrupts.
struct Current {
  std::string program;
  std::string paths;
  uint64_t seed = 0;
  uint64_t number = 0;
};
Current current;

void print_reproducer() {
  std::fprintf(stderr, "\nrepeat with: %s --seed %llu --only %llu%s\n", current.program.c_str(),
               static_cast<unsigned long long>(current.seed),
               static_cast<unsigned long long>(current.number), current.paths.c_str());
}

void on_signal(int signal) {
  if (signal == SIGPROF || signal == SIGALRM) {
    std::fprintf(stderr, "\none input took more than %u s", kSecondsPerInput);
  }
  print_reproducer();
  std::_Exit(1);
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      options.paths.emplace_back(word);
      current.paths += " " + word;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == std::string::npos && i + 1 == argc) return false;
    const std::string value = equals == std::string::npos ? argv[++i] : word.substr(equals + 1);
    word = word.substr(0, equals);
    if (word == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (word == "--runs") {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--only") {
      options.has_only = true;
      options.only = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--save") {
      options.save = value;
    } else {
      return false;
    }
  }
  return true;
}

// Of the processor: another load on the machine is not the input's fault. What sleeps has longer.
void limit_seconds(unsigned seconds) {
  const itimerval left = {{}, {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &left, nullptr);
  alarm(10 * seconds);
}

void run_one(const Corpus& corpus, uint64_t number, const std::string& save) {
  current.number = number;
  const std::string input = corpus.input(current.seed, number);
  if (!save.empty()) std::ofstream(save, std::ios::binary) << input;
  limit_seconds(kSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  limit_seconds(0);
}

int run(const Options& options) {
  Corpus corpus = read_seeds(options.paths);
  if (kProperty.seeds != nullptr)
    for (std::string& seed : kProperty.seeds()) corpus.add(std::move(seed));
  if (corpus.size() == 0) {
    std::fprintf(stderr, "no input to start from\n");
    return 2;
  }
  current.seed = options.seed;
  if (options.has_only) {
    run_one(corpus, options.only, options.save);
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  uint64_t number = 0;
  uint64_t slowest = 0;
  double longest = 0, now = 0;
  for (; number < options.runs && now < options.seconds; ++number) {
    const double begin = now;
    run_one(corpus, number, "");
    now = seconds();
    if (now - begin <= longest) continue;
    longest = now - begin;
    slowest = number;
  }
  std::printf("%s inputs from %zu seeds in %.0f s, all survived; %s were taken\n",
              std::to_string(number).c_str(), corpus.size(), now,
              std::to_string(counts().taken).c_str());
  std::printf("at most %zu MB; at most %.1f s, which number %s took\n", counts().peak_bytes >> 20,
              longest, std::to_string(slowest).c_str());
  return 0;
}

}  // namespace
}  // namespace lathe::fuzz

int main(int argc, char** argv) {
  using namespace lathe::fuzz;
  Options options;
  current.program = argv[0];
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: %s [--seconds N] [--runs N] [--seed S] [--only N [--save F]] PATH ...\n",
                 argv[0]);
    return 2;
  }
  for (const int signal : {SIGPROF, SIGALRM}) std::signal(signal, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_reproducer);
  } else {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) {
      std::signal(signal, on_signal);
    }
  }
  return run(options);
}
