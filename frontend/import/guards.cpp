// Arguments become the sizes that they stand for, and the rest is a comparison of sizes.
//
//   guard    = side ( "==" | ... ) side, with in it
//   argument = "L[" STRING "]" { "[" ( STRING | INT ) "]" } [ ".size()[" INT "]" ]
#include "frontend/import/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lathe {
namespace {

// A guard of an honest model is far shorter.
constexpr size_t kMostText = 1024;

class GuardReader {
 public:
  GuardReader(const Signature& signature, const Module& module)
      : signature_(signature), module_(module) {
    const std::vector<TreeSpec>& sides = signature.in_spec.children;
    if (sides.size() != 2) return;
    number_leaves(signature.in_spec);
    for (size_t i = 0; i < sides[1].keys.size(); ++i)
      arguments_.emplace(sides[1].keys[i], &sides[1].children[i]);
    const size_t named = std::min(signature.arg_names.size(), sides[0].children.size());
    for (size_t i = 0; i < named; ++i)
      arguments_.insert_or_assign(signature.arg_names[i], &sides[0].children[i]);
  }

  std::optional<Guard> read(const std::string& text) {
    if (text.size() > kMostText) return std::nullopt;
    std::string sizes;  // the text, with a name for each argument
    std::map<std::string, Dim> meant;
    std::string_view rest = text;
    while (!rest.empty()) {
      const bool is_word = !sizes.empty() && is_name_char(sizes.back());
      if (!rest.starts_with("L[") || is_word) {
        sizes += rest.front();
        rest.remove_prefix(1);
        continue;
      }
      rest.remove_prefix(1);
      const std::optional<Dim> size = argument(rest);
      if (!size) return std::nullopt;
      const std::string name = fmt::format("argument_{}", meant.size());
      sizes += name;
      meant.emplace(name, *size);
    }
    Lexer lexer(sizes, "", nullptr);
    Result<Guard> guard = parse_guard(lexer);
    if (!guard.ok() || !lexer.at_end()) return std::nullopt;
    *guard = substitute(*std::move(guard), meant);
    if (guard->left.is_too_large() || guard->right.is_too_large()) return std::nullopt;
    guard->cause = text;
    return *std::move(guard);
  }

 private:
  static bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  // The key in brackets at the beginning, which is taken off; its quotes are not kept.
  static std::optional<std::string_view> take_key(std::string_view& rest) {
    const size_t end = rest.find(']');
    if (!rest.starts_with("[") || end == std::string_view::npos) return std::nullopt;
    const std::string_view key = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    const bool is_quoted =
        key.size() >= 2 && (key.front() == '\'' || key.front() == '"') && key.back() == key.front();
    return is_quoted ? key.substr(1, key.size() - 2) : key;
  }

  static std::optional<size_t> as_number(std::string_view text) {
    size_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
  }

  void number_leaves(const TreeSpec& spec) {
    if (spec.kind == TreeSpec::Kind::leaf) leaves_.emplace(&spec, leaves_.size());
    for (const TreeSpec& child : spec.children) number_leaves(child);
  }

  // What L[...] at the beginning stands for; what is read is taken off.
  std::optional<Dim> argument(std::string_view& rest) {
    const std::optional<std::string_view> name = take_key(rest);
    if (!name) return std::nullopt;
    const auto found = arguments_.find(*name);
    const TreeSpec* at = found == arguments_.end() ? nullptr : found->second;
    while (at != nullptr && rest.starts_with("[")) {
      const std::optional<std::string_view> key = take_key(rest);
      at = key ? child(*at, *key) : nullptr;
    }
    const auto leaf = leaves_.find(at);
    if (leaf == leaves_.end() || leaf->second >= signature_.inputs.size()) return std::nullopt;
    return size_of(signature_.inputs[leaf->second], rest);
  }

  std::optional<Dim> size_of(const InputLeaf& leaf, std::string_view& rest) const {
    constexpr std::string_view kSize = ".size()";
    if (leaf.kind == InputLeaf::Kind::size) return leaf.size;
    if (leaf.kind == InputLeaf::Kind::constant) {
      const auto* number = std::get_if<int64_t>(&leaf.constant);
      return number != nullptr ? std::optional<Dim>(*number) : std::nullopt;
    }
    if (!rest.starts_with(kSize)) return std::nullopt;
    rest.remove_prefix(kSize.size());
    const std::optional<std::string_view> key = take_key(rest);
    const std::optional<size_t> dim = key ? as_number(*key) : std::nullopt;
    const Shape& shape = module_.main().params[static_cast<size_t>(leaf.param)]->types[0].shape;
    return dim && *dim < shape.size() ? std::optional<Dim>(shape[*dim]) : std::nullopt;
  }

  // Null when there is none. Keys are indexed when they are first asked for.
  const TreeSpec* child(const TreeSpec& spec, std::string_view key) {
    if (spec.keys.empty()) {
      const std::optional<size_t> number = as_number(key);
      return number && *number < spec.children.size() ? &spec.children[*number] : nullptr;
    }
    auto [index, is_new] = by_key_.try_emplace(&spec);
    if (is_new)
      for (size_t i = 0; i < spec.keys.size(); ++i)
        index->second.emplace(spec.keys[i], &spec.children[i]);
    const auto found = index->second.find(key);
    return found == index->second.end() ? nullptr : found->second;
  }

  using ByKey = std::unordered_map<std::string_view, const TreeSpec*>;

  const Signature& signature_;
  const Module& module_;
  ByKey arguments_;  // of forward, by name
  std::unordered_map<const TreeSpec*, ByKey> by_key_;
  std::unordered_map<const TreeSpec*, size_t> leaves_;  // their numbers
};

}  // namespace

void read_guards(const std::vector<std::string>& texts, Signature& signature, Module& module) {
  GuardReader reader(signature, module);
  for (const std::string& text : texts) {
    std::optional<Guard> guard = reader.read(text);
    if (!guard)
      signature.unread_guards.push_back(text);
    else if (decide(*guard, module.dims) != true)
      module.guards.push_back(*std::move(guard));
  }
}

}  // namespace lathe
