// Arguments become the sizes that they stand for, and the rest is a comparison of sizes.
//
//   guard    = side ( "==" | ... ) side, with in it
//   argument = "L[" STRING "]" { "[" ( STRING | INT ) "]" } [ ".size()[" INT "]" ]
#include "frontend/import/guards.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace lathe {
namespace {

class GuardReader {
 public:
  GuardReader(const Signature& signature, const Module& module)
      : signature_(signature), module_(module) {}

  std::optional<Guard> read(const std::string& text) const {
    std::string sizes;
    std::string_view rest = text;
    while (!rest.empty()) {
      const bool is_word = !sizes.empty() && (std::isalnum(sizes.back()) || sizes.back() == '_');
      if (!rest.starts_with("L[") || is_word) {
        sizes += rest.front();
        rest.remove_prefix(1);
        continue;
      }
      rest.remove_prefix(1);
      const std::optional<Dim> size = argument(rest);
      if (!size) return std::nullopt;
      sizes += "(" + size->str() + ")";
    }
    Lexer lexer(sizes, "", nullptr);
    Result<Guard> guard = parse_guard(lexer);
    if (!guard.ok() || !lexer.at_end()) return std::nullopt;
    guard->cause = text;
    return *std::move(guard);
  }

 private:
  // The key in brackets at the beginning, which is taken off; its quotes are not kept.
  static std::optional<std::string> take_key(std::string_view& rest) {
    const size_t end = rest.find(']');
    if (!rest.starts_with("[") || end == std::string_view::npos) return std::nullopt;
    std::string_view key = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    const bool is_quoted =
        key.size() >= 2 && (key.front() == '\'' || key.front() == '"') && key.back() == key.front();
    return std::string(is_quoted ? key.substr(1, key.size() - 2) : key);
  }

  static std::optional<size_t> as_number(const std::string& text) {
    size_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
  }

  // What L[...] at the beginning stands for; what is read is taken off.
  std::optional<Dim> argument(std::string_view& rest) const {
    const std::optional<std::string> name = take_key(rest);
    if (!name || signature_.in_spec.children.size() != 2) return std::nullopt;
    const TreeSpec *positional = &signature_.in_spec.children[0],
                   *keywords = &signature_.in_spec.children[1];
    size_t leaf = 0;
    const TreeSpec* at = nullptr;
    for (size_t i = 0; at == nullptr && i < signature_.arg_names.size(); ++i)
      if (signature_.arg_names[i] == *name && i < positional->children.size())
        at = child(*positional, i, leaf);
    if (at == nullptr) {
      leaf = positional->num_leaves();
      at = child(*keywords, *name, leaf);
    }
    while (at != nullptr && rest.starts_with("[")) {
      const std::optional<std::string> key = take_key(rest);
      if (!key) return std::nullopt;
      at = child(*at, *key, leaf);
    }
    if (at == nullptr || at->kind != TreeSpec::Kind::leaf || leaf >= signature_.inputs.size())
      return std::nullopt;
    return size_of(signature_.inputs[leaf], rest);
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
    const std::optional<std::string> key = take_key(rest);
    const std::optional<size_t> dim = key ? as_number(*key) : std::nullopt;
    const Shape& shape = module_.main().params[static_cast<size_t>(leaf.param)]->types[0].shape;
    return dim && *dim < shape.size() ? std::optional<Dim>(shape[*dim]) : std::nullopt;
  }

  // A child, with the number of its first leaf; null when there is none.
  static const TreeSpec* child(const TreeSpec& spec, size_t i, size_t& leaf) {
    if (i >= spec.children.size()) return nullptr;
    for (size_t before = 0; before < i; ++before) leaf += spec.children[before].num_leaves();
    return &spec.children[i];
  }
  static const TreeSpec* child(const TreeSpec& spec, const std::string& key, size_t& leaf) {
    for (size_t i = 0; i < spec.keys.size(); ++i)
      if (spec.keys[i] == key) return child(spec, i, leaf);
    const std::optional<size_t> number = as_number(key);
    return number && spec.keys.empty() ? child(spec, *number, leaf) : nullptr;
  }

  const Signature& signature_;
  const Module& module_;
};

}  // namespace

void read_guards(const std::vector<std::string>& texts, Signature& signature, Module& module) {
  const GuardReader reader(signature, module);
  for (const std::string& text : texts) {
    std::optional<Guard> guard = reader.read(text);
    if (!guard)
      signature.unread_guards.push_back(text);
    else if (decide(*guard, module.dims) != true)
      module.guards.push_back(*std::move(guard));
  }
}

}  // namespace lathe
