// Loads models and their data. Names no op: what a node is, its row says.
#include "frontend/driver/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "frontend/file/file_source.h"
#include "frontend/file/zip.h"
#include "frontend/npz/npz.h"
#include "frontend/weights/random.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bind.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

namespace {

// The table of FX targets, built once: it holds every schema of every row.
Result<const ImportTable*> import_table() {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  if (!table.ok()) return Diag(table.error());
  return &*table;
}

template <class Visit>
void for_each_weight(const Module& module, Visit visit) {
  for (const auto& graph : module.graphs)
    for (const auto& node : graph->nodes)
      if (node->op->attr_index("name") >= 0 && !node->is_none("name")) visit(*node);
}

// Text names weights in constants only; the module learns their types from there.
void declare_weights(Module& module) {
  for_each_weight(module, [&](const Node& node) {
    Weight& weight = module.weights[node.string_attr("name")];
    if (weight.data.bytes != nullptr) return;
    weight.data.type = node.types[0];
    weight.data.strides = row_major_strides(node.types[0].static_shape());
  });
}

// Every symbol's size: given, or the exporter's example; inside its range.
Status choose_dims(Model& model, const std::map<std::string, int64_t>& given) {
  std::vector<std::string> symbols;
  for (const auto& param : model.module.main().params)
    for (const Dim& dim : param->types[0].shape) dim.collect_symbols(symbols);
  const std::vector<std::string> in_run = model.module.main().bound_symbols();
  for (const auto& [symbol, size] : model.module.hints)  // integer arguments bind some
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end() &&
        std::find(in_run.begin(), in_run.end(), symbol) == in_run.end())
      symbols.push_back(symbol);
  for (const auto& [symbol, size] : given)
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end())
      return no_such_dim("", symbol, symbols);
  for (const std::string& symbol : symbols) {
    auto chosen = given.find(symbol);
    auto hint = model.module.hints.find(symbol);
    if (chosen == given.end() && hint == model.module.hints.end())
      return Diag{
          code::kBadValue, Loc::unknown(),
          fmt::format("the size of '{}' is not known, expected --dims {}=SIZE", symbol, symbol)};
    int64_t size = chosen != given.end() ? chosen->second : hint->second;
    model.dims[symbol] = size;
  }
  return check_sizes(model, model.module.guards, model.dims);
}

ImportOptions import_options(const ModelOptions& options) {
  ImportOptions import;
  import.allow_missing_weights = options.random_weights.has_value() || options.allow_no_weights;
  import.leave_weights = options.leave_weights;
  return import;
}

// What all forms of a model have in common, once its module is there.
Result<Model> finish(Model model, const std::string& path, const ModelOptions& options,
                     LocTable& locs_on_error) {
  model.path = path;
  model.random_weights = options.random_weights;
  Status status = choose_dims(model, options.dims);
  locs_on_error = status.ok() ? LocTable() : std::move(model.module.locs);
  if (!status.ok()) return std::move(status).error();
  return model;
}

Model model_of(ImportedModel imported) {
  Model model;
  model.producer = fmt::format("torch {} export", imported.torch_version);
  model.signature = std::move(imported.signature);
  model.weight_places = std::move(imported.weight_places);
  model.module = std::move(imported.module);
  return model;
}

}  // namespace

Diag no_such_dim(std::string_view context, const std::string& symbol,
                 const std::vector<std::string>& symbols) {
  const std::string near = nearest(symbol, symbols);
  const std::string hint = symbols.empty() ? "the model has none"
                           : near.empty()
                               ? fmt::format("the model's are {}", fmt::join(symbols, ", "))
                               : fmt::format("did you mean '{}'?", near);
  return {code::kBadValue, Loc::unknown(),
          fmt::format("{}no symbolic dim named '{}'; {}", context, symbol, hint)};
}

std::vector<ShapeBinding> sized_inputs(const Model& model) {
  std::vector<ShapeBinding> inputs;
  for (const auto& param : model.module.main().params)
    inputs.push_back({.name = param->name, .expected = param->types[0].shape});
  if (!model.signature) return inputs;
  for (const InputLeaf& leaf : model.signature->inputs)
    if (leaf.kind == InputLeaf::Kind::size)
      inputs.push_back({.name = leaf.name, .expected = {leaf.size}, .is_number = true});
  return inputs;
}

bool Model::has_weights() const {
  return std::all_of(module.weights.begin(), module.weights.end(), [&](const auto& entry) {
    return entry.second.data.bytes != nullptr ||
           (weight_file != nullptr && weight_places.count(entry.first) != 0);
  });
}

Model::WeightTotals Model::weight_totals() const {
  std::set<std::string> names;
  for_each_weight(module, [&](const Node& node) { names.insert(node.string_attr("name")); });
  // By entry of the archive; a weight without one has its name.
  std::map<std::string, std::vector<StoredRange>> stored;
  for (const std::string& name : names) {
    const auto weight = module.weights.find(name);
    if (weight == module.weights.end()) continue;
    const auto place = weight_places.find(name);
    const bool is_placed = place != weight_places.end();
    stored[is_placed ? place->second.entry : name].push_back(
        range_of(weight->second.data, is_placed ? place->second.first_byte : 0));
  }
  WeightTotals totals;
  for (auto& [entry, ranges] : stored) {
    std::sort(ranges.begin(), ranges.end(),
              [](const StoredRange& a, const StoredRange& b) { return a.begin < b.begin; });
    int64_t counted = 0;  // up to this byte
    for (const StoredRange& range : ranges) {
      const int64_t num_new = std::max<int64_t>(range.end - std::max(range.begin, counted), 0);
      totals.bytes += num_new;
      totals.elements += num_new / range.width;
      counted = std::max(counted, range.end);
    }
  }
  return totals;
}

ModelOptions model_options(const CompileRequest& request) {
  ModelOptions options;
  options.dims = request.dims;
  if (request.weights.is_random) options.random_weights = request.weights.seed;
  return options;
}

int64_t Model::num_nodes() const { return static_cast<int64_t>(module.main().nodes.size()); }

bool is_text_path(const std::string& path) {
  constexpr std::string_view kEnding = ".lathe";
  return path.size() > kEnding.size() &&
         path.compare(path.size() - kEnding.size(), kEnding.size(), kEnding) == 0;
}

Result<Model> load_text(std::string_view text, const std::string& name, const ModelOptions& options,
                        LocTable& locs_on_error) {
  if (is_program_text(text)) {
    const Lexer lexer(text, name, &locs_on_error);
    return lexer.error(lexer.peek(),
                       "the text is a program, which is lowered already, expected a graph; "
                       "`lathe compile`, `run` and `opt` take programs",
                       code::kBadForm);
  }
  Model model;
  LATHE_TRY(model.module, parse(text, builtin_registry(), name, &locs_on_error));
  model.producer = "text";
  declare_weights(model.module);
  return finish(std::move(model), name, options, locs_on_error);
}

Result<Model> load_model(const pt2::ModelFile& file, const ModelOptions& options,
                         LocTable& locs_on_error) {
  LATHE_TRY(const ImportTable* table, import_table());
  LATHE_TRY(ImportedModel imported, import_model(file, *table, builtin_registry(),
                                                 import_options(options), &locs_on_error));
  return finish(model_of(std::move(imported)), file.file, options, locs_on_error);
}

Result<Model> load_model(const pt2::ModelFile& file, const std::vector<GivenWeight>& weights,
                         const ModelOptions& options, LocTable& locs_on_error) {
  ModelOptions left = options;
  left.allow_no_weights = true;
  LATHE_TRY(Model model, load_model(file, left, locs_on_error));
  const auto refuse = [&](const char* code, std::string message) {
    Diag diag{code, model.module.locs.text(file.file, 0, 0), std::move(message)};
    locs_on_error = std::move(model.module.locs);
    return diag;
  };
  std::map<std::string, Weight>& known = model.module.weights;
  for (const GivenWeight& given : weights) {
    const auto found = known.find(given.name);
    if (found == known.end())
      return refuse(code::kMissingWeight, fmt::format("the graph has no weight '{}'", given.name));
    if (found->second.data.type != given.data.type)
      return refuse(code::kTypeMismatch,
                    fmt::format("weight '{}' is {} in the graph, got {}", given.name,
                                to_string(found->second.data.type), to_string(given.data.type)));
    found->second.data = given.data;
  }
  for (const auto& [name, weight] : known)
    if (weight.data.bytes == nullptr && !options.random_weights)
      return refuse(code::kMissingWeight, fmt::format("weight '{}' is not given", name));
  return model;
}

Result<std::vector<RefusedCall>> find_refused_calls(const pt2::ModelFile& file) {
  LATHE_TRY(const ImportTable* table, import_table());
  return find_refused_calls(file, *table, builtin_registry());
}

Result<Model> load_model(const std::string& path, const ModelOptions& options,
                         LocTable& locs_on_error) {
  if (is_text_path(path)) {
    LATHE_TRY(std::string text, read_file(path));
    return load_text(text, path, options, locs_on_error);
  }
  const std::optional<EntryPath> inside = entry_path(path);
  LATHE_TRY(FileSource source, open_file(inside ? inside->zip : path));
  Result<pt2::ModelFile> file = inside ? pt2::open_entry(std::move(source), inside->entry, path)
                                       : pt2::open_model(std::move(source), path);
  if (!file.ok()) {
    Diag diag = std::move(file).error();
    if (diag.loc.is_unknown()) diag.loc = locs_on_error.text(path, 0, 0);
    return diag;
  }
  ModelOptions left = options;
  left.leave_weights = true;
  LATHE_TRY(Model model, load_model(*file, left, locs_on_error));
  if (!file->archive || options.leave_weights) return model;
  file->program = {};  // its text may be as large as a weight
  file->weights_config.reset();
  file->constants_config.reset();
  model.weight_file =
      std::make_shared<const WeightFile>(WeightFile{*std::move(file), model.weight_places});
  return model;
}

Status check_sizes(const Model& model, const std::vector<Guard>& guards,
                   const std::map<std::string, int64_t>& sizes) {
  return check_sizes(sized_inputs(model), {model.module.dims, guards}, sizes);
}

Result<std::vector<TensorType>> input_types(const Model& model) {
  std::vector<TensorType> types;
  for (const auto& param : model.module.main().params) {
    TensorType type = param->types[0];
    for (Dim& dim : type.shape) {
      LATHE_TRY(int64_t size, dim.evaluate(model.dims));
      dim = size;
    }
    types.push_back(std::move(type));
  }
  return types;
}

// Views and casts of positions are positions, and so is what a condition chooses among them. What
// the model asserts of them says how large they are.
FillRule random_input_rule(const Model& model, size_t input, const TensorType& type) {
  const Graph& graph = model.module.main();
  IntegerRange range;
  std::set<const Node*> positions = {graph.params[input].get()};
  for (const auto& node : graph.nodes) {
    const auto holds_positions = [&](size_t operand) {
      return operand < node->operands.size() && positions.count(node->operands[operand].node) != 0;
    };
    const auto bound = [&](const char* name, int64_t otherwise) {
      const auto* dim = std::get_if<Dim>(&node->attr(name));
      if (dim == nullptr) return otherwise;
      const Result<int64_t> size = dim->evaluate(model.dims);
      return size.ok() ? *size : otherwise;
    };
    if (node->op->traits.asserts == Asserts::positions && holds_positions(0)) {
      range.low = std::max(range.low, bound("low", range.low));
      range.high = std::max(range.low + 1, std::min(range.high, bound("high", range.high)));
    }
    const bool is_lookup = node->op->name == "embedding" || node->op->name == "index_select";
    if (is_lookup && holds_positions(1)) {
      const Shape& table = node->operand(0).type().shape;
      const auto dim = static_cast<size_t>(node->int_attr("dim", 0));
      if (dim < table.size() && table[dim].is_const())
        range.high = std::min(range.high, std::max<int64_t>(1, table[dim].value()));
    } else if (holds_positions(0) &&
               (node->op->traits.op_class == OpClass::view || node->op->name == "cast")) {
      positions.insert(node.get());
    } else if (node->op->name == "where" && (holds_positions(1) || holds_positions(2))) {
      positions.insert(node.get());
    }
  }
  return input_rule(graph.params[input]->name, type, range);
}

Result<Tensor> random_input(const InputType& input, const FillRule& rule, uint64_t seed) {
  LATHE_TRY(FileBytes bytes, random_tensor(input.name, input.type, rule, seed));
  TensorData data;
  data.type = input.type;
  data.strides = row_major_strides(input.type.static_shape());
  data.bytes = bytes.data;
  data.num_bytes = bytes.size;
  return read_tensor(data);
}

Result<std::vector<Tensor>> random_inputs(const Model& model, uint64_t seed) {
  LATHE_TRY(std::vector<TensorType> types, input_types(model));
  double num_bytes = 0;
  for (const TensorType& type : types)
    num_bytes += static_cast<double>(type.static_elements().value_or(INT64_MAX)) *
                 static_cast<double>(sizeof(double));  // as tensors hold them
  LATHE_DO(check_fits(num_bytes, "the inputs"));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    const InputType type = {model.module.main().params[i]->name, types[i]};
    const FillRule rule = random_input_rule(model, i, types[i]);
    LATHE_TRY(Tensor input, random_input(type, rule, seed));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Result<std::vector<Tensor>> read_inputs(const std::vector<InputType>& types,
                                        const std::string& npz_path) {
  std::set<std::string> names;
  for (size_t i = 0; i < types.size(); ++i) names.insert(fmt::format("{}", i));
  LATHE_TRY(std::vector<NamedArray> arrays, read_npz(npz_path, &names));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = fmt::format("{}", i);
    auto array = std::find_if(arrays.begin(), arrays.end(),
                              [&](const NamedArray& a) { return a.name == name; });
    const TensorType& type = types[i].type;
    if (array == arrays.end())
      return Diag{code::kOperandCount, Loc::unknown(),
                  fmt::format("{}: no tensor named '{}', expected 0 to {} for the inputs", npz_path,
                              name, types.size() - 1)};
    if (array->array.dtype != type.dtype)
      return Diag{code::kDtypeMismatch, Loc::unknown(),
                  fmt::format("{}: tensor '{}' is {}, expected {} ('{}')", npz_path, name,
                              dtype_name(array->array.dtype), to_string(type), types[i].name)};
    TensorData data;
    data.type.dtype = type.dtype;
    data.type.shape.assign(array->array.shape.begin(), array->array.shape.end());
    data.strides = row_major_strides(array->array.shape);
    data.bytes = array->array.bytes.data;
    data.num_bytes = array->array.bytes.size;
    LATHE_TRY(Tensor tensor, read_tensor(data));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Result<std::vector<Tensor>> read_inputs(Model& model, const std::string& npz_path) {
  std::vector<InputType> types;
  for (const auto& param : model.module.main().params)
    types.push_back({param->name, param->types[0]});
  LATHE_TRY(std::vector<Tensor> inputs, read_inputs(types, npz_path));
  std::vector<ShapeBinding> bindings;
  for (size_t i = 0; i < types.size(); ++i)
    bindings.push_back({types[i].name, types[i].type.shape, inputs[i].shape});
  // What no tensor determines keeps its value.
  std::vector<std::string> determined;
  for (const ShapeBinding& binding : bindings)
    for (const Dim& dim : binding.expected) dim.collect_symbols(determined);
  std::map<std::string, int64_t> known = model.dims;
  for (const std::string& symbol : determined) known.erase(symbol);
  LATHE_TRY(model.dims, bind_symbols(bindings, {model.module.dims, model.module.guards}, known));
  return inputs;
}

Status save_tensors(const std::string& npz_path, const std::vector<Tensor>& tensors) {
  std::vector<NamedArray> arrays;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto bytes = std::make_shared<std::vector<std::byte>>(to_bytes(tensors[i]));
    arrays.push_back({fmt::format("{}", i),
                      {tensors[i].dtype, tensors[i].shape, {bytes->data(), bytes->size(), bytes}}});
  }
  LATHE_TRY(std::string bytes, npz_bytes(arrays));
  return write_output(npz_path, bytes);
}

DType model_dtype(const Model& model) {
  const Graph& graph = model.module.main();
  for (Value output : graph.outputs)
    if (output && is_float(output.type().dtype)) return output.type().dtype;
  for (const auto& param : graph.params)
    if (is_float(param->types[0].dtype)) return param->types[0].dtype;
  return DType::f32;
}

Result<Module> reference_module(const Model& model) {
  Unit unit;
  unit.module = clone(model.module);
  LATHE_DO(model.random_weights ? random_weights(unit.module, *model.random_weights, false)
                                : model.weights().read_into(unit.module));
  // Nothing else: what a pass got wrong must not be in the reference too. Functionalising itself is
  // tested against PyTorch's results.
  LATHE_TRY(Pipeline pipeline, parse_pipeline("functionalize"));
  const Target target;
  PassContext context{.ops = builtin_registry(), .target = target};
  LATHE_TRY(PipelineReport report, run_pipeline(unit, pipeline, {}, context));
  return std::move(unit.module);
}

}  // namespace lathe
