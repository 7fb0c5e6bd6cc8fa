// Imports the main graph's inputs, outputs and mutations, as its signature says what each is.
#include <fmt/format.h>

#include <utility>

#include "frontend/import/graph_importer.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

Status GraphImporter::import_inputs() {
  for (const pt2::InputSpec& spec : program_.graph_module.signature.input_specs) {
    switch (spec.tag) {
      case pt2::InputSpec::Tag::parameter:
      case pt2::InputSpec::Tag::buffer:
      case pt2::InputSpec::Tag::tensor_constant:
        scope_.bind_weight(spec.arg.as<std::string>(), spec.target);
        break;
      case pt2::InputSpec::Tag::user_input:
        LATHE_DO(import_user_input(spec));
        break;
      case pt2::InputSpec::Tag::constant_input: {
        InputLeaf leaf{InputLeaf::Kind::constant, spec.target};
        std::visit([&](const auto& value) { leaf.constant = value; }, spec.value);
        model_.signature.inputs.push_back(std::move(leaf));
        break;
      }
      case pt2::InputSpec::Tag::custom_obj:
      case pt2::InputSpec::Tag::token:
        break;  // a call that uses one is reported there
      case pt2::InputSpec::Tag::unknown:
        return scope_.broken(spec.offset, "an input spec of an unknown kind");
    }
  }
  return Ok{};
}

Status GraphImporter::import_user_input(const pt2::InputSpec& spec) {
  const Argument& arg = spec.arg;
  InputLeaf leaf;
  if (arg.tag == Tag::as_tensor) {
    leaf.name = arg.as<std::string>();
    auto meta = scope_.graph().tensor_values.find(leaf.name);
    if (meta == scope_.graph().tensor_values.end())
      return scope_.broken(arg.offset,
                           fmt::format("input '{}' has no entry in tensor_values", leaf.name));
    for (const pt2::SymInt& size : meta->second.sizes) LATHE_DO(symbols_.add_input(size));
    Result<TensorType> found = symbols_.type(meta->second, leaf.name);
    if (!found.ok() && refused_ != nullptr) {
      scope_.bind(leaf.name, Value());  // whoever uses it is refused
      return Ok{};
    }
    LATHE_TRY(TensorType type, std::move(found));
    leaf.param = static_cast<int>(builder_.graph().params.size());
    builder_.set_loc(stacks_.locate({leaf.name, "placeholder", {}, {}, {}}));
    Value param = builder_.param(std::move(type), leaf.name);
    if (builder_.failed()) return builder_.error();
    leaf.encoding = encoding_of(meta->second.dtype);
    builder_.mark(param, leaf.encoding);
    scope_.bind(leaf.name, param);
  } else if (arg.tag == Tag::as_sym_int) {
    const auto& size = arg.as<pt2::SymArgument<int64_t>>();
    leaf.kind = InputLeaf::Kind::size;
    leaf.name = size.as_name.value_or("");
    LATHE_TRY(leaf.size, scope_.size(size, arg.offset));
    auto value = scope_.graph().sym_int_values.find(leaf.name);
    if (value != scope_.graph().sym_int_values.end()) LATHE_DO(symbols_.add_input(value->second));
  } else if (std::optional<PyConstant> constant = Scope::constant(arg)) {
    leaf.kind = InputLeaf::Kind::constant;
    leaf.constant = *std::move(constant);
  } else {
    return Diag{code::kUnsupported, json::locate(document_, arg.offset, model_.module.locs),
                fmt::format("an input of kind {} is not supported; tensors, ints and constants are",
                            pt2::tag_name(arg.tag))};
  }
  model_.signature.inputs.push_back(std::move(leaf));
  return Ok{};
}

Status GraphImporter::import_outputs() {
  for (const OutputSpec& spec : program_.graph_module.signature.output_specs) {
    switch (spec.tag) {
      case OutputSpec::Tag::user_output:
      case OutputSpec::Tag::loss_output:
        LATHE_DO(import_user_output(spec));
        break;
      case OutputSpec::Tag::buffer_mutation:
      case OutputSpec::Tag::parameter_mutation:
      case OutputSpec::Tag::user_input_mutation:
        LATHE_DO(import_mutation(spec));
        break;
      case OutputSpec::Tag::token:
        break;
      case OutputSpec::Tag::gradient_to_parameter:
      case OutputSpec::Tag::gradient_to_user_input:
        return Diag{code::kUnsupported, json::locate(document_, spec.offset, model_.module.locs),
                    "graphs that return gradients are not supported; export the forward alone"};
      case OutputSpec::Tag::unknown:
        return scope_.broken(spec.offset, "an output spec of an unknown kind");
    }
  }
  return Ok{};
}

Status GraphImporter::import_user_output(const OutputSpec& spec) {
  OutputLeaf leaf;
  if (std::optional<PyConstant> constant = Scope::constant(spec.arg)) {
    leaf.kind = OutputLeaf::Kind::constant;
    leaf.constant = *std::move(constant);
  } else {
    LATHE_TRY(CallArg arg, scope_.argument(spec.arg));
    if (const Value* value = std::get_if<Value>(&arg)) {
      leaf.output = static_cast<int>(builder_.graph().outputs.size());
      leaf.encoding = builder_.encoding(*value);
      builder_.graph().outputs.push_back(*value);
    } else if (const Attr* attr = std::get_if<Attr>(&arg); attr && std::get_if<Dim>(attr)) {
      leaf.kind = OutputLeaf::Kind::size;
      leaf.size = *std::get_if<Dim>(attr);
    } else if (attr && std::get_if<int64_t>(attr)) {
      leaf.kind = OutputLeaf::Kind::constant;
      leaf.constant = *std::get_if<int64_t>(attr);
    } else {
      return Diag{
          code::kUnsupported, json::locate(document_, spec.offset, model_.module.locs),
          fmt::format("an output of kind {} is not supported", pt2::tag_name(spec.arg.tag))};
    }
  }
  model_.signature.outputs.push_back(std::move(leaf));
  return Ok{};
}

Status GraphImporter::import_mutation(const OutputSpec& spec) {
  LATHE_TRY(CallArg arg, scope_.argument(spec.arg));
  const Value* value = std::get_if<Value>(&arg);
  if (!value) return scope_.broken(spec.offset, "a mutation's new contents must be a tensor");
  bool is_input = spec.tag == OutputSpec::Tag::user_input_mutation;
  const TensorType* type = nullptr;  // of what is mutated
  if (auto weight = model_.module.weights.find(spec.target);
      !is_input && weight != model_.module.weights.end())
    type = &weight->second.data.type;
  for (const auto& param : builder_.graph().params)
    if (is_input && param->name == spec.target) type = &param->types.front();
  if (type == nullptr)
    return scope_.broken(spec.offset, fmt::format("mutation of '{}', which is no {} of the model",
                                                  spec.target, is_input ? "input" : "weight"));
  for (const Mutation& other : builder_.graph().mutations)
    if (other.is_input == is_input && other.target == spec.target)
      return scope_.broken(spec.offset, fmt::format("two mutations of '{}'", spec.target));
  if (type->dtype != value->type().dtype || type->shape != value->type().shape)
    return scope_.broken(spec.offset,
                         fmt::format("mutation of '{}', which is {}, by {}", spec.target,
                                     to_string(*type), to_string(value->type())));
  builder_.graph().mutations.push_back({spec.target, is_input, *value});
  return Ok{};
}

}  // namespace lathe
