// Writes flags as a JSON object; every value's place in the JSON text is kept beside its place in
// the command line.
#include "frontend/driver/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/diag_codes.h"
#include "ir/support/printable.h"

namespace lathe {

namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         text.find_first_not_of("0123456789.") == std::string::npos && nlohmann::json::accept(text);
}

std::string scalar(const std::string& text) {
  bool is_word = text == "true" || text == "false" || text == "null";
  return is_word || is_number(text) ? text : quoted(text);
}

class Writer {
 public:
  explicit Writer(const std::string& command_line) : line_(command_line) {}

  void add(const Flag& flag, FlagForm form) {
    find_value(flag, 0);
    begin_member(flag.key);
    if (form == FlagForm::list) {
      write_list(flag.value);
    } else if (form == FlagForm::pairs) {
      write_pairs(flag.value);
    } else {
      put(form == FlagForm::text ? quoted(flag.value) : scalar(flag.value), 0);
    }
  }

  // --passes NAME=PIPELINE; a pipeline's own '=' stands inside braces.
  void add_pipelines(const std::vector<Flag>& flags) {
    begin_member(flags[0].key);
    bool is_single = flags.size() == 1 && variant_name(flags[0].value).empty();
    json_ += is_single ? "" : "{";
    for (const Flag& flag : flags) {
      find_value(flag, &flag == &flags[0] ? 0 : line_position_ + 1);
      std::string name = variant_name(flag.value);
      size_t skip = name.empty() ? 0 : name.size() + 1;
      if (!is_single)
        json_ += (&flag == &flags[0] ? "" : ",") + quoted(name.empty() ? flag.value : name) + ":";
      put(quoted(flag.value.substr(skip)), skip);
    }
    json_ += is_single ? "" : "}";
  }

  std::string finish() { return (json_.empty() ? "{" : json_) + "}"; }

  // The offset in the command line of an offset in the JSON text.
  size_t line_offset(size_t json_offset) const {
    size_t best = 0;
    for (const auto& [in_json, in_line] : places_)
      if (in_json <= json_offset)
        best = in_line + (json_offset - in_json > 0 ? json_offset - in_json - 1 : 0);
    return std::min(best, line_.size());
  }

 private:
  static std::string variant_name(const std::string& text) {
    size_t equals = text.find('='), brace = text.find('{');
    return equals == std::string::npos || brace < equals ? "" : text.substr(0, equals);
  }

  // Puts line_position_ at the flag's value, behind `from`.
  void find_value(const Flag& flag, size_t from) {
    for (char separator : {' ', '='}) {
      size_t at = line_.find("--" + flag.key + separator + flag.value, from);
      if (at != std::string::npos) line_position_ = at + flag.key.size() + 3;
    }
  }

  void begin_member(const std::string& key) {
    json_ += (json_.empty() ? "{" : ",") + quoted(key) + ":";
  }
  void put(const std::string& json, size_t skip) {
    places_.emplace_back(json_.size(), line_position_ + skip);
    json_ += json;
  }

  void write_list(const std::string& text) {
    put("[", 0);
    for (size_t at = 0; at <= text.size();) {
      size_t end = std::min(text.find(',', at), text.size());
      if (at > 0) json_ += ",";
      put(scalar(text.substr(at, end - at)), at);
      at = end + 1;
    }
    json_ += "]";
  }

  void write_pairs(const std::string& text) {
    put("{", 0);
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find(',', at), text.size());
      std::string pair = text.substr(at, end - at);
      size_t equals = std::min(pair.find('='), pair.size());
      if (at > 0) json_ += ",";
      put(quoted(pair.substr(0, equals)), at);
      json_ += ":";
      bool has_value = equals < pair.size();
      put(has_value ? scalar(pair.substr(equals + 1)) : "null", at + (has_value ? equals + 1 : 0));
      at = end + 1;
    }
    json_ += "}";
  }

  const std::string& line_;
  size_t line_position_ = 0;
  std::string json_;
  std::vector<std::pair<size_t, size_t>> places_;  // (in the JSON text, in the line)
};

}  // namespace

std::vector<FlagRow> option_flags() {
  std::vector<FlagRow> rows;
  for (const CompileOption& option : compile_options())
    rows.push_back({std::string(option.key), std::string(option.help), option.form});
  return rows;
}

Status apply_flags(const std::vector<Flag>& flags, const std::vector<FlagRow>& rows,
                   const std::string& command_line, LocTable& locs, const ApplyFn& apply) {
  Writer writer(command_line);
  std::vector<Flag> pipelines;
  for (const Flag& flag : flags) {
    if (!is_utf8(flag.value))
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("the value of --{}, '{}', is not UTF-8", flag.key, flag.value)};
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const FlagRow& r) { return r.key == flag.key; });
    FlagForm form = row == rows.end() ? FlagForm::text : row->form;
    if (form == FlagForm::pipelines) {
      pipelines.push_back(flag);
    } else {
      writer.add(flag, form);
    }
  }
  if (!pipelines.empty()) writer.add_pipelines(pipelines);
  std::string text = writer.finish();
  LATHE_TRY(auto document, json::parse(text, "command line", locs));
  LocateFn locate = [&](size_t offset) {
    return locs.text("command line", 1, static_cast<int>(writer.line_offset(offset)) + 1,
                     command_line);
  };
  return apply(document->root(), locate);
}

}  // namespace lathe
