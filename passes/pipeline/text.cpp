// Pipelines as text: the parser, with the nearest name for every mistake, and the printer.
#include <algorithm>
#include <cctype>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

Diag syntax_error(std::string message) { return {code::kSyntax, Loc::unknown(), message}; }

// ", did you mean 'x'?" or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  std::string near = nearest(word, candidates);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

class Parser {
 public:
  Parser(std::string_view text, const std::vector<PassDef>& passes)
      : text_(text), passes_(passes) {}

  Result<Pipeline> parse() {
    skip_space();
    while (!at_end()) {
      LATHE_DO(parse_step());
      skip_space();
      if (at_end()) break;
      if (peek() != ',')
        return syntax_error(fmt::format("pipeline position {}: expected ',' or the end, got '{}'",
                                        position_ + 1, peek()));
      ++position_;
      skip_space();
      if (at_end()) return syntax_error("pipeline ends after ',', expected a pass");
    }
    return std::move(pipeline_);
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char peek() const { return text_[position_]; }
  void skip_space() {
    while (!at_end() && is_space(peek())) ++position_;
  }

  Result<std::string> parse_name(std::string_view what) {
    size_t begin = position_;
    while (!at_end() && is_name_char(peek())) ++position_;
    if (position_ > begin) return std::string(text_.substr(begin, position_ - begin));
    std::string got = at_end() ? "the end" : fmt::format("'{}'", peek());
    return syntax_error(
        fmt::format("pipeline position {}: expected {}, got {}", begin + 1, what, got));
  }

  // Up to the next space or brace, or a quoted string with \" and \\.
  Result<std::string> parse_value() {
    std::string value;
    if (at_end() || peek() != '"') {
      while (!at_end() && !is_space(peek()) && peek() != '}' && peek() != '{' && peek() != '"')
        value += text_[position_++];
      return value;
    }
    size_t begin = position_++;
    while (!at_end() && peek() != '"') {
      if (peek() == '\\' && position_ + 1 < text_.size()) ++position_;
      value += text_[position_++];
    }
    if (at_end())
      return syntax_error(fmt::format("pipeline position {}: the quote never ends", begin + 1));
    ++position_;
    return value;
  }

  Status parse_options(const PassDef& pass, PassOptions& options) {
    ++position_;  // the brace
    for (skip_space(); !at_end() && peek() != '}'; skip_space()) {
      LATHE_TRY(std::string name, parse_name("an option"));
      if (options.find(name) == options.end()) {
        std::vector<std::string> names;
        for (const PassOption& option : pass.options) names.push_back(option.name);
        std::string rest = names.empty() ? "; it has none" : suggestion(name, names);
        return Diag{code::kUnknownKey, Loc::unknown(),
                    fmt::format("pass '{}' has no option '{}'{}", pass.name, name, rest)};
      }
      if (at_end() || peek() != '=')
        return syntax_error(
            fmt::format("pipeline position {}: expected '=' after '{}'", position_ + 1, name));
      ++position_;
      LATHE_TRY(options[name], parse_value());
    }
    if (at_end()) return syntax_error(fmt::format("the options of '{}' lack a '}}'", pass.name));
    ++position_;
    return Ok{};
  }

  Status unknown_pass(const std::string& name) const {
    std::vector<std::string> names;
    for (const PassDef& pass : passes_) names.push_back(pass.name);
    for (const NamedPipeline& named : pipelines()) names.push_back(named.name);
    return Diag{code::kUnknownPass, Loc::unknown(),
                fmt::format("no pass named '{}'{}", name, suggestion(name, names))};
  }

  const PassDef* find(const std::string& name) const {
    for (const PassDef& pass : passes_)
      if (pass.name == name) return &pass;
    return nullptr;
  }

  Status parse_step() {
    bool removes = peek() == '-';
    if (removes) ++position_;
    LATHE_TRY(std::string name, parse_name("a pass"));
    if (const PassDef* pass = find(name)) return removes ? remove(name) : append(*pass);
    for (const NamedPipeline& named : pipelines()) {
      if (named.name != name || removes) continue;
      for (const StepReason& reason : named.steps) {
        Parser inner(reason.step, passes_);  // a step is a pass: the nesting ends here
        LATHE_TRY(Pipeline step, inner.parse());
        for (PipelineStep& s : step.steps) pipeline_.steps.push_back(std::move(s));
      }
      return Ok{};
    }
    return unknown_pass(name);
  }

  Status append(const PassDef& pass) {
    PipelineStep step{&pass, {}};
    for (const PassOption& option : pass.options) step.options[option.name] = option.default_value;
    if (!at_end() && peek() == '{') LATHE_DO(parse_options(pass, step.options));
    pipeline_.steps.push_back(std::move(step));
    return Ok{};
  }

  Status remove(const std::string& name) {
    auto& steps = pipeline_.steps;
    auto is_named = [&](const PipelineStep& step) { return step.pass->name == name; };
    auto first = std::remove_if(steps.begin(), steps.end(), is_named);
    if (first == steps.end())
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("'-{}' takes out a pass that stands nowhere before it", name)};
    steps.erase(first, steps.end());
    return Ok{};
  }

  std::string_view text_;
  const std::vector<PassDef>& passes_;
  size_t position_ = 0;
  Pipeline pipeline_;
};

std::string print_value(const std::string& value) {
  bool is_plain = value.find_first_of(" \t\r\n{}\"\\") == std::string::npos;
  if (is_plain) return value;
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

}  // namespace

Result<Pipeline> parse_pipeline(std::string_view text, const std::vector<PassDef>& passes) {
  return Parser(text, passes).parse();
}

std::string print(const PipelineStep& step) {
  std::string options;
  for (const PassOption& option : step.pass->options) {
    auto given = step.options.find(option.name);
    if (given == step.options.end() || given->second == option.default_value) continue;
    options += (options.empty() ? "" : " ") + option.name + "=" + print_value(given->second);
  }
  return options.empty() ? step.pass->name : step.pass->name + "{" + options + "}";
}

std::string print(const Pipeline& pipeline) {
  std::string text;
  for (const PipelineStep& step : pipeline.steps) text += (text.empty() ? "" : ",") + print(step);
  return text;
}

}  // namespace lathe
