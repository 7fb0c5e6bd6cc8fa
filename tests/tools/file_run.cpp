// Runs one case of a .lathe test file: parses, runs the pipeline, compares output and diagnostics.
#include "tests/tools/file_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/driver/program_text.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/program/text.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"
#include "tests/tools/line_checks.h"

namespace lathe::file_test {
namespace {

// 1-based line of the text that a location stems from; 0 when it stems from none.
int line_of(const LocTable& locs, Loc loc) {
  const LocRow& row = locs[locs.origin(loc)];
  return row.kind == LocRow::Kind::text ? row.line : 0;
}

Status run_pipeline_text(const FileCase& test, const Registry& ops, Outcome& outcome) {
  const Target* target = find_target(test.target);
  LATHE_CHECK(target != nullptr, "no target named '" + test.target + "'");
  LATHE_TRY(const Pipeline pipeline, parse_pipeline(test.action));
  RunOptions options;
  options.check_honesty = true;
  if (is_program_text(test.input)) options.start = Form::loops;
  options.on_step = [&](const PassRecord& record) {
    outcome.refusals.insert(outcome.refusals.end(), record.refusals.begin(), record.refusals.end());
    return true;
  };
  PassContext context{ops, *target};
  context.overrides = test.force;
  context.numerics = test.numerics;
  LATHE_TRY(const PipelineReport report, run_pipeline(outcome.unit, pipeline, options, context));
  outcome.output =
      report.form < Form::loops ? print(outcome.unit.module) : print(outcome.unit.program);
  return Ok{};
}

constexpr size_t kShownElements = 8;

Status run_program(const Program& program, std::string& output) {
  const ProgramTextOptions options{.weights = 0,
                                   .limits = {.max_bytes = 1 << 30, .max_steps = 1 << 20}};
  LATHE_TRY(const ProgramResults results, run_program_text(program, options));
  for (size_t i = 0; i < results.outputs.size(); ++i)
    output += show_output(results.program, i, results.outputs[i], kShownElements) + "\n";
  return Ok{};
}

// "dim s0 in [1, 4]" lines on one line. An expected module shares them with its input.
std::string dim_lines(std::string_view text) {
  std::string lines;
  for (const std::string& line : split_lines(text)) {
    if (line.rfind("dim ", 0) == 0) lines += line + " ";
  }
  return lines;
}

// Without the symbols' ranges, which an expected module does not repeat.
std::string print_graphs(const Module& module) {
  std::string text;
  for (const auto& graph : module.graphs) text += print(*graph);
  return text;
}

void compare_expected(const FileCase& test, const Outcome& outcome, const Registry& ops,
                      std::string_view file, std::vector<std::string>& failures) {
  if (!test.has_expected || !outcome.error.empty()) return;
  LocTable locs;
  std::string text = test.expected;
  if (dim_lines(text).empty()) text.insert(0, dim_lines(test.input));
  const Result<Module> expected = parse(text, ops, file, &locs);
  if (!expected) {
    failures.push_back(fmt::format("{}:{}: what follows '=>' does not parse:\n{}", file,
                                   test.expected_begin - 1, render(expected.error(), locs)));
    return;
  }
  const std::vector<std::unique_ptr<Graph>>& got = outcome.unit.module.graphs;
  const bool is_equal = std::equal(
      expected->graphs.begin(), expected->graphs.end(), got.begin(), got.end(),
      [](const auto& a, const auto& b) { return structural_hash(*a) == structural_hash(*b); });
  if (is_equal) return;
  failures.push_back(
      fmt::format("{}:{}: expected (-) and got (+):\n{}", file, test.expected_begin - 1,
                  line_diff(print_graphs(*expected), print_graphs(outcome.unit.module))));
}

// A diagnostic as reported: its line, its kind, its words.
struct Reported {
  ExpectedDiag diag;
  bool is_optional = false;  // compared only where a test asks for it
  bool is_seen = false;
};

std::vector<Reported> reported_diags(const Outcome& outcome) {
  std::vector<Reported> reported;
  for (const Diag& error : outcome.error) {
    const int line = line_of(outcome.locs, error.loc);
    reported.push_back({{"error", error.code, error.message, line, line}, false});
    for (const Note& note : error.notes) {
      const int note_line = line_of(outcome.locs, note.loc);
      // A note without a place of its own, such as which pass it was, says more of the error.
      reported.push_back(
          {{"note", "", note.message, note_line != 0 ? note_line : line, 0}, note_line == 0});
    }
  }
  for (const Refusal& refusal : outcome.refusals) {
    const int line = line_of(outcome.locs, refusal.loc);
    reported.push_back({{"refuses", "", refusal.message, line, line}, true});
  }
  return reported;
}

bool matches(const ExpectedDiag& expected, const ExpectedDiag& reported) {
  // An error without a place in the file may be written anywhere.
  return expected.severity == reported.severity && expected.code == reported.code &&
         (expected.line == reported.line || reported.line == 0) &&
         reported.text.find(expected.text) != std::string::npos;
}

std::string show(const ExpectedDiag& diag) {
  const std::string code = diag.code.empty() ? "" : "[" + diag.code + "]";
  return fmt::format("{}{}: {}", diag.severity, code, diag.text);
}

void compare_diags(const FileCase& test, const Outcome& outcome, std::string_view file,
                   std::vector<std::string>& failures) {
  std::vector<Reported> reported = reported_diags(outcome);
  for (const ExpectedDiag& expected : test.diags) {
    bool is_found = false;
    for (Reported& candidate : reported) {
      if (candidate.is_seen || !matches(expected, candidate.diag)) continue;
      candidate.is_seen = is_found = true;
      break;
    }
    if (is_found) continue;
    failures.push_back(fmt::format("{}:{}: missing {}", file, expected.line, show(expected)));
  }
  for (const Reported& candidate : reported) {
    if (candidate.is_seen || candidate.is_optional) continue;
    failures.push_back(
        fmt::format("{}:{}: unexpected {}", file, candidate.diag.line, show(candidate.diag)));
  }
}

}  // namespace

namespace {

// The input as it stands: a module, or a program.
Status parse_input(const FileCase& test, const Registry& ops, std::string_view file, Unit& unit,
                   LocTable& locs) {
  if (is_program_text(test.input)) {
    LATHE_TRY(unit.program, parse_program(test.input, locs, file));
    unit.module.locs = locs;
    return Ok{};
  }
  LATHE_TRY(unit.module, parse(test.input, ops, file, &locs));
  return Ok{};
}

}  // namespace

Outcome run_case(const FileCase& test, const Registry& ops, std::string_view file) {
  Outcome outcome;
  LocTable locs;
  if (const Status parsed = parse_input(test, ops, file, outcome.unit, locs); !parsed) {
    outcome.error.push_back(parsed.error());
    outcome.locs = std::move(locs);
    return outcome;
  }
  if (test.action == "parse" || test.action == "print") {
    outcome.output =
        is_program_text(test.input) ? print(outcome.unit.program) : print(outcome.unit.module);
  } else {
    const Status status = test.action == "run" ? run_program(outcome.unit.program, outcome.output)
                                               : run_pipeline_text(test, ops, outcome);
    if (!status) outcome.error.push_back(status.error());
  }
  outcome.locs = outcome.unit.module.locs;
  return outcome;
}

std::vector<std::string> compare(const FileCase& test, const Outcome& outcome, const Registry& ops,
                                 std::string_view file) {
  std::vector<std::string> failures;
  compare_diags(test, outcome, file, failures);
  if (!outcome.error.empty()) return failures;
  check_lines(test.checks, outcome.output, file, failures);
  compare_expected(test, outcome, ops, file, failures);
  if (test.checks.empty() && test.diags.empty() && !test.has_expected && test.action != "parse") {
    failures.push_back(fmt::format("{}:{}: the case expects nothing", file, test.line));
  }
  return failures;
}

std::string bless(std::string_view text, const std::vector<FileCase>& cases,
                  const std::vector<Outcome>& outcomes) {
  std::vector<std::string> lines = split_lines(text);
  // From the end, so that line numbers before it hold.
  for (size_t i = cases.size(); i-- > 0;) {
    const FileCase& test = cases[i];
    const Outcome& outcome = outcomes[i];
    for (const ExpectedDiag& diag : test.diags) {
      if (diag.severity != "error" || outcome.error.size() != 1) continue;
      std::string& line = lines[static_cast<size_t>(diag.written_line - 1)];
      const std::string_view offset = std::string_view(line).substr(line.rfind("// error[") + 9);
      const size_t place = offset.find(']') + 1;
      line = fmt::format(
          "{}// error[{}]{} {}", line.substr(0, line.rfind("// error[")), outcome.error[0].code,
          offset.substr(place, offset.find(':', place) + 1 - place), outcome.error[0].message);
    }
    if (!test.has_expected || !outcome.error.empty()) continue;
    std::vector<std::string> body;
    for (std::string& line : split_lines(outcome.output)) {
      if (line.rfind("dim ", 0) != 0 && !(line.empty() && body.empty())) {
        body.push_back(std::move(line));
      }
    }
    const auto begin = lines.begin() + test.expected_begin - 1;
    lines.erase(begin, lines.begin() + test.expected_end - 1);
    lines.insert(lines.begin() + test.expected_begin - 1, body.begin(), body.end());
  }
  std::string blessed;
  for (const std::string& line : lines) blessed += line + "\n";
  return blessed;
}

}  // namespace lathe::file_test
