// Reads stack_trace, nn_module_stack and from_node.
#include "frontend/stacks/stacks.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/file/json.h"

namespace lathe {
namespace {

constexpr size_t kMaxFrames = 256;  // of one stack; the innermost stay
constexpr std::string_view kGenerated = "<eval_with_key>";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// 'File "m.py", line 3, in forward'
std::optional<Frame> parse_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  if (line.substr(0, kFile.size()) != kFile) return std::nullopt;
  size_t file_end = line.rfind(kLine);
  if (file_end == line.npos || file_end < kFile.size()) return std::nullopt;
  Frame frame;
  frame.file = line.substr(kFile.size(), file_end - kFile.size());
  const char* number = line.data() + file_end + kLine.size();
  auto [number_end, error] = std::from_chars(number, line.data() + line.size(), frame.line);
  if (error != std::errc()) return std::nullopt;
  // Code that FX generated for a traced graph stands in no file.
  if (frame.file.compare(0, kGenerated.size(), kGenerated) == 0) frame.file.clear();
  std::string_view rest = line.substr(static_cast<size_t>(number_end - line.data()));
  if (rest.substr(0, kIn.size()) == kIn) frame.function = rest.substr(kIn.size());
  return frame;
}

// The markers that newer Pythons draw below a code line.
bool is_marker(std::string_view line) { return line.find_first_not_of("^~ ") == line.npos; }

// Splits at `separator` outside brackets: a class may be "Proj[int, (2, 3)]".
std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != separator || depth > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string member_string(json::Value object, std::string_view key) {
  json::MaybeValue member = object.member(key);
  return member && (*member).kind() == json::Kind::string ? std::string((*member).string()) : "";
}

// "torch.ops.aten.linear.default" and "aten.linear.default" are one target.
std::string_view short_target(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (target.substr(0, kPrefix.size()) == kPrefix) target.remove_prefix(kPrefix.size());
  return target;
}

}  // namespace

int32_t StackReader::frame_of(std::string_view stack_trace) {
  if (stack_trace.empty()) return -1;
  auto [entry, is_new] = frames_.try_emplace(std::string(stack_trace), -1);
  if (!is_new) return entry->second;
  std::vector<Frame> stack;
  for (size_t at = 0; at < stack_trace.size();) {
    size_t end = std::min(stack_trace.find('\n', at), stack_trace.size());
    std::string_view line = trim(stack_trace.substr(at, end - at));
    at = end + 1;
    if (std::optional<Frame> frame = parse_frame(line))
      stack.push_back(*std::move(frame));
    else if (!stack.empty() && stack.back().code.empty() && !is_marker(line))
      stack.back().code = line;
  }
  stack.erase(std::remove_if(stack.begin(), stack.end(),
                             [](const Frame& frame) { return frame.file.empty(); }),
              stack.end());
  int32_t parent = -1;
  size_t first = stack.size() > kMaxFrames ? stack.size() - kMaxFrames : 0;
  for (size_t i = first; i < stack.size(); ++i)
    parent = locs_.add_frame(parent, std::move(stack[i]));
  return entry->second = parent;
}

const StackReader::Module& StackReader::module_of(std::string_view nn_module_stack) {
  auto [entry, is_new] = modules_.try_emplace(std::string(nn_module_stack));
  if (is_new && !nn_module_stack.empty()) {
    std::string_view innermost = split_outside_brackets(nn_module_stack, ';').back();
    std::vector<std::string_view> fields = split_outside_brackets(innermost, ',');
    if (fields.size() == 3) entry->second = {std::string(fields[1]), std::string(fields[2])};
  }
  return entry->second;
}

Loc StackReader::locate(const NodeOrigin& origin) {
  LocRow row;
  row.kind = LocRow::Kind::python;
  row.frame = frame_of(origin.stack_trace);
  const Module& module = module_of(origin.nn_module_stack);
  row.module_path = module.path;
  row.module_class = module.type;
  row.fx_node = origin.name;
  row.fx_target = short_target(origin.target);
  if (origin.from_node.empty()) return locs_.add(std::move(row));

  if (root_text_ != origin.from_node) {
    root_text_ = origin.from_node;
    root_name_.clear();
    LocTable unused;
    auto document = json::parse(root_text_, "from_node", unused);
    if (document.ok()) {
      // The innermost list is the oldest; lists of several nodes follow their first.
      json::MaybeValue level = (*document)->root();
      while (level && (*level).kind() == json::Kind::array && (*level).size() > 0) {
        json::Value node = *(*level).elements().begin();
        root_name_ = member_string(node, "name");
        root_target_ = member_string(node, "target");
        level = node.member("from_node");
      }
    }
  }
  // An origin that is no operator call (such as the guards' submodule) says less than the node.
  bool is_other = root_name_ != row.fx_node || short_target(root_target_) != row.fx_target;
  bool is_call = root_target_.find('.') != root_target_.npos;
  if (root_name_.empty() || !is_other || !is_call) return locs_.add(std::move(row));
  row.fx_node = root_name_;
  row.fx_target = short_target(root_target_);
  return locs_.derive("run_decompositions", {locs_.add(std::move(row))});
}

}  // namespace lathe
