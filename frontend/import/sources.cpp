// Paths through the arguments: the inverse of what guards.cpp reads.
#include "frontend/import/sources.h"

#include <fmt/format.h>

namespace lathe {
namespace {

std::string step_into(const TreeSpec& spec, size_t child) {
  if (child >= spec.keys.size()) return fmt::format("[{}]", child);
  const bool has_fields =
      spec.kind == TreeSpec::Kind::named_tuple || spec.kind == TreeSpec::Kind::other;
  return has_fields ? "." + spec.keys[child] : fmt::format("['{}']", spec.keys[child]);
}

void add_leaves(const TreeSpec& spec, const std::string& path, std::vector<std::string>& out) {
  if (spec.kind == TreeSpec::Kind::leaf) out.push_back(path);
  for (size_t i = 0; i < spec.children.size(); ++i)
    add_leaves(spec.children[i], path + step_into(spec, i), out);
}

// Of a size that is a multiple of one symbol; a bare one is preferred.
void add_symbol(const Dim& size, const std::string& source,
                std::map<std::string, std::string>& bare,
                std::map<std::string, std::string>& multiples) {
  if (!size.symbol_name().empty()) bare.emplace(size.symbol_name(), source);
  const auto terms = size.monomials();
  if (terms.size() == 1 && terms[0].second > 1 && !terms[0].first.symbol_name().empty())
    multiples.emplace(terms[0].first.symbol_name(), fmt::format("{}//{}", source, terms[0].second));
}

}  // namespace

std::vector<std::string> argument_sources(const Signature& signature) {
  std::vector<std::string> sources;
  const std::vector<TreeSpec>& sides = signature.in_spec.children;
  if (sides.size() != 2) return sources;
  const TreeSpec& positional = sides[0];
  for (size_t i = 0; i < positional.children.size(); ++i) {
    const std::string name =
        i < signature.arg_names.size() ? signature.arg_names[i] : fmt::format("args_{}", i);
    add_leaves(positional.children[i], fmt::format("L['{}']", name), sources);
  }
  add_leaves(sides[1], "L", sources);
  return sources;
}

std::map<std::string, std::string> symbol_sources(const Module& module,
                                                  const Signature* signature) {
  std::map<std::string, std::string> bare, multiples;
  const auto add_param = [&](size_t param, const std::string& source) {
    const Shape& shape = module.main().params[param]->types[0].shape;
    for (size_t d = 0; d < shape.size(); ++d)
      add_symbol(shape[d], fmt::format("{}.size()[{}]", source, d), bare, multiples);
  };
  if (signature == nullptr) {
    const auto& params = module.main().params;
    for (size_t i = 0; i < params.size(); ++i)
      add_param(i, fmt::format("L['{}']", params[i]->name));
  } else {
    const std::vector<std::string> sources = argument_sources(*signature);
    for (size_t i = 0; i < sources.size() && i < signature->inputs.size(); ++i) {
      const InputLeaf& leaf = signature->inputs[i];
      if (leaf.kind == InputLeaf::Kind::tensor)
        add_param(static_cast<size_t>(leaf.param), sources[i]);
      if (leaf.kind == InputLeaf::Kind::size) add_symbol(leaf.size, sources[i], bare, multiples);
    }
  }
  bare.merge(multiples);
  return bare;
}

}  // namespace lathe
