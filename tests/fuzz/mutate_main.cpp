// Runs a fuzz target on seeded mutations of valid inputs:
//   text_fuzz [--seconds N] [--runs N] [--seed S] [--only NUMBER [--save FILE]] FILE_OR_FOLDER ...
//
// The target is LLVMFuzzerTestOneInput, as for libFuzzer, which can be linked instead
// (--config=libfuzzer). A crash, a sanitizer's complaint or an input that takes over 10 s ends the
// run and prints the command that repeats it.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// What a sanitizer run tolerates: no allocation of gigabytes, whatever an input says.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=4096:allocator_may_return_null=0";
}
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
  if (signal == SIGALRM) {
    std::fprintf(stderr, "\none input took more than %u s", kSecondsPerInput);
  }
  print_reproducer();
  std::_Exit(1);
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  return bytes;
}

// What a .gz file holds, at most Corpus::kMaxBytes; "" when it is none.
std::string unzip(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  std::string text(Corpus::kMaxBytes + 1, '\0');
  const int bytes = gzread(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return text.size() > Corpus::kMaxBytes ? "" : text;
}

Corpus read_corpus(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (!entry.is_directory()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  Corpus corpus;
  for (const fs::path& file : files) {
    const std::string bytes = read_file(file);
    if (bytes.size() <= Corpus::kMaxBytes) corpus.add(bytes);
    if (file.extension() == ".gz") corpus.add(unzip(file));
  }
  return corpus;
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

void run_one(const Corpus& corpus, uint64_t number, const std::string& save) {
  current.number = number;
  const std::string input = corpus.input(current.seed, number);
  if (!save.empty()) std::ofstream(save, std::ios::binary) << input;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
}

int run(const Options& options) {
  const Corpus corpus = read_corpus(options.paths);
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
  for (; number < options.runs && seconds() < options.seconds; ++number) {
    run_one(corpus, number, "");
  }
  std::printf("%llu inputs from %zu seeds in %.0f s, all survived\n",
              static_cast<unsigned long long>(number), corpus.size(), seconds());
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
  std::signal(SIGALRM, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_reproducer);
  } else {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) {
      std::signal(signal, on_signal);
    }
  }
  return run(options);
}
