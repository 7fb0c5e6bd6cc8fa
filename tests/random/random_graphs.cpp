// Random graphs through whole pipelines, on every machine that is asked for.
//
//   bazel run //tests/random:random_graphs -- --seed 1 --count 10000 --machine "cpu avx2"
//   bazel run //tests/random:random_graphs -- --case $PWD/tests/random/NAME.lathe
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/random/generator.h"
#include "tests/random/minimise.h"
#include "tests/random/run_case.h"
#include "tests/random/square.h"
#include "tests/random/symbolize.h"
#include "tests/random/workers.h"

namespace lathe::random_graphs {
namespace {

constexpr const char* kHelp = R"(flags, each followed by its value:
  --seed N        of the graphs; graph i of a seed does not depend on the others (0)
  --first N       the first graph (0)
  --count N       how many graphs (100)
  --machine M     "cpu avx2", "cpu avx512", "cpu avx512_bf16", "wasm relaxed", "wasm simd128",
                  "interp sm_90"; may be repeated (cpu avx2)
  --alternate 1   each graph on one of the machines instead of all
  --strict 1      strict numerics: every machine must return the bits of the first
  --symbols 1     sizes become symbols: one program for each graph, run at some sizes
  --square 1      and with --symbols: what it is with numbers put in, beside the program that is
                  lowered for these numbers
  --guards 1      and with --symbols: leave out one guard after the other, which must not go
                  unnoticed; a guard that is stricter than its op is with numbers is reported too
  --jobs N        processes (2)
  --keep DIR      write failing graphs there, minimised
  --max-failures N  stop after so many (10)
  --case FILE     run this file instead; with --keep, minimise it when it fails
  --print N       print graph N of the seed and stop
)";

struct Flags {
  uint64_t seed = 0, first = 0, count = 100;
  std::vector<Machine> machines;
  bool alternates = false, is_strict = false, has_symbols = false;
  bool is_square = false, drops_guards = false;
  int jobs = 2, max_failures = 10;
  std::string keep, file;
  std::optional<uint64_t> print;
};

Status read_flag(Flags& flags, const std::string& key, const std::string& value) {
  const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
  if (key == "--seed")
    flags.seed = number;
  else if (key == "--first")
    flags.first = number;
  else if (key == "--count")
    flags.count = number;
  else if (key == "--alternate")
    flags.alternates = number != 0;
  else if (key == "--strict")
    flags.is_strict = number != 0;
  else if (key == "--symbols")
    flags.has_symbols = number != 0;
  else if (key == "--square")
    flags.is_square = number != 0;
  else if (key == "--guards")
    flags.drops_guards = number != 0;
  else if (key == "--jobs")
    flags.jobs = static_cast<int>(number);
  else if (key == "--max-failures")
    flags.max_failures = static_cast<int>(number);
  else if (key == "--keep")
    flags.keep = value;
  else if (key == "--case")
    flags.file = value;
  else if (key == "--print")
    flags.print = number;
  else if (key == "--machine") {
    LATHE_TRY(Machine machine, parse_machine(value));
    flags.machines.push_back(std::move(machine));
  } else {
    return Diag{"random-flag", Loc::unknown(), fmt::format("no flag '{}'\n{}", key, kHelp)};
  }
  return Ok{};
}

Result<Flags> read_flags(int count, char** words) {
  Flags flags;
  for (int i = 1; i < count; i += 2)
    LATHE_DO(read_flag(flags, words[i], i + 1 < count ? words[i + 1] : ""));
  if (flags.is_strict && flags.has_symbols)
    return Diag{"random-flag", Loc::unknown(),
                "--strict compares machines at numbers; --square 1 compares bits over symbols"};
  if (flags.machines.empty()) flags.machines.push_back({"cpu", "avx2"});
  return flags;
}

Verdict judge(const Flags& flags, const Case& test, const std::vector<Machine>& machines,
              Coverage* coverage) {
  if (flags.is_strict) return compare_bits(test, machines);
  Verdict all;
  for (const Machine& machine : machines) {
    Verdict verdict = flags.drops_guards ? run_without_guards(test, machine, coverage)
                      : flags.is_square  ? run_square(test, machine, coverage)
                                         : run_case(test, machine, coverage);
    if (verdict.kind == Verdict::Kind::agrees) continue;
    verdict.text = machine.name() + ": " + verdict.text;
    if (verdict.is_failure()) return verdict;
    all = std::move(verdict);
  }
  return all;
}

// The words of an error without its values: equal ones are one failure.
std::string kind_of_failure(const Verdict& verdict) {
  std::string words(kind_name(verdict.kind));
  if (verdict.kind == Verdict::Kind::error)
    words += " " + verdict.text.substr(0, verdict.text.find('\''));
  return words;
}

Case minimised(const Flags& flags, Case failing, const std::vector<Machine>& machines,
               const Verdict& first) {
  const auto fails = [&](const Case& candidate) {
    const Verdict verdict = judge_apart([&] { return judge(flags, candidate, machines, nullptr); });
    return kind_of_failure(verdict) == kind_of_failure(first);
  };
  Case small = minimise(std::move(failing), fails);
  const Verdict last = judge_apart([&] { return judge(flags, small, machines, nullptr); });
  small.title = fmt::format("{} ({})", kind_name(last.kind), last.text);
  return small;
}

void keep(const Flags& flags, const std::string& name, const Case& small) {
  std::error_code ignored;
  std::filesystem::create_directories(flags.keep, ignored);
  std::ofstream(flags.keep + "/" + name + ".lathe") << print(small);
  fmt::print("kept {}/{}.lathe\n{}\n", flags.keep, name, print(small));
}

int run_file(const Flags& flags) {
  std::ifstream stream(flags.file);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  auto test = parse_case(text, flags.file);
  if (!test.ok()) {
    fmt::print("{}: {}\n", flags.file, test.error().message);
    return 2;
  }
  const Verdict verdict = judge_apart([&] { return judge(flags, *test, flags.machines, nullptr); });
  fmt::print("{} {}\n", kind_name(verdict.kind), verdict.text);
  if (verdict.is_failure() && !flags.keep.empty())
    keep(flags, "minimised", minimised(flags, *std::move(test), flags.machines, verdict));
  return verdict.is_failure() ? 1 : 0;
}

Case make(const Flags& flags, uint64_t index) {
  Case test = generate(flags.seed, index);
  if (!flags.has_symbols) return test;
  std::optional<Case> symbolic = symbolize(test, flags.seed + index);
  return symbolic ? *std::move(symbolic) : std::move(test);
}

// The generator evaluates what it makes, which a wrong row can crash too.
bool is_generated(uint64_t seed, uint64_t index) {
  const Verdict verdict = judge_apart([&] {
    generate(seed, index);
    return Verdict{};
  });
  if (verdict.is_failure()) fmt::print("graph {}: the generator {}\n", index, verdict.text);
  return !verdict.is_failure();
}

int run_seed(const Flags& flags) {
  const auto machines_of = [&](uint64_t index) {
    if (!flags.alternates) return flags.machines;
    return std::vector<Machine>{flags.machines[index % flags.machines.size()]};
  };
  std::map<Verdict::Kind, int> counts;
  std::vector<std::pair<uint64_t, Verdict>> failures;
  const auto start = std::chrono::steady_clock::now();
  const Coverage coverage = work(
      {.first = flags.first, .count = flags.count, .jobs = flags.jobs},
      [&](uint64_t index, Coverage& seen) {
        return judge(flags, make(flags, index), machines_of(index), &seen);
      },
      [&](uint64_t index, const Verdict& verdict) {
        ++counts[verdict.kind];
        if (!verdict.is_failure()) return true;
        fmt::print("graph {} {}: {}\n", index, kind_name(verdict.kind), verdict.text);
        std::fflush(stdout);
        failures.emplace_back(index, verdict);
        return static_cast<int>(failures.size()) < flags.max_failures;
      });
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  for (const auto& [what, count] : coverage) fmt::print("{:8} {}\n", count, what);
  for (const auto& [kind, count] : counts) fmt::print("{} {}\n", count, kind_name(kind));
  fmt::print("{:.1f} ms a graph\n", elapsed.count() / static_cast<double>(flags.count));
  std::fflush(stdout);
  if (!flags.keep.empty())
    for (const auto& [index, verdict] : failures) {
      if (!is_generated(flags.seed, index)) continue;
      keep(flags, fmt::format("seed_{}_graph_{}", flags.seed, index),
           minimised(flags, make(flags, index), machines_of(index), verdict));
    }
  return failures.empty() ? 0 : 1;
}

int run(int count, char** words) {
  const auto flags = read_flags(count, words);
  if (!flags.ok()) {
    fmt::print("{}\n", flags.error().message);
    return 2;
  }
  if (flags->print) {
    fmt::print("{}", print(make(*flags, *flags->print)));
    return 0;
  }
  return flags->file.empty() ? run_seed(*flags) : run_file(*flags);
}

}  // namespace
}  // namespace lathe::random_graphs

int main(int count, char** words) { return lathe::random_graphs::run(count, words); }
