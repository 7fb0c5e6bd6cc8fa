// Matrix products and convolutions: operands and epilogue as expressions for the contraction
// template.
#include "passes/lowering/contraction.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/loop/linear.h"
#include "ir/templates/packing.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/library.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

// An element of the rows, from where they lie or from their copy. The copy is the rows' alone: with
// a border its indices are others, and an epilogue may read the same value.
Expr row_element(KernelContext& kernel, const ContractionOperands& operands, Index index) {
  if (operands.rows_buffer < 0) return kernel.element_within(operands.rows, index);
  return kernel.load(operands.rows_buffer, index);
}

// The load of bf16 that the element widens; null for anything else.
Expr narrow(Expr element) {
  const auto* cast = std::get_if<loop::Cast>(&element->kind);
  const bool is_load = cast != nullptr && cast->x->dtype == DType::bf16 &&
                       std::holds_alternative<loop::Load>(cast->x->kind);
  return is_load ? cast->x : Expr();
}

// Elements from a row to the next, and from an element of the innermost reduction to the next.
struct RowSteps {
  Dim row = 0, element = 0;
  bool is_bf16 = false;
};

// When the template can walk the rows in place: a plain load whose index is linear.
std::optional<RowSteps> row_steps(KernelContext& kernel, const ContractionOperands& operands) {
  const ContractionSpec& spec = operands.spec;
  const std::vector<Expr> batch = kernel.variables(spec.batch), m = kernel.variables(spec.m),
                          k = kernel.variables(spec.k);
  const Expr element = row_element(kernel, operands, operands.row_index(batch, m, k));
  const std::optional<loop::SizedLinear> form = load_index(element);
  if (!form) return std::nullopt;
  return RowSteps{step_along(*form, m.back()), step_along(*form, k.back()), bool(narrow(element))};
}

// Elements from a column to the next, and from an element of the innermost reduction to the next.
struct ColumnSteps {
  Dim column = 0, element = 0;
  bool is_bf16 = false;
};

// When the columns are plain loads whose index is linear.
std::optional<ColumnSteps> column_steps(KernelContext& kernel,
                                        const ContractionOperands& operands) {
  const ContractionSpec& spec = operands.spec;
  const std::vector<Expr> batch = kernel.variables(spec.batch), k = kernel.variables(spec.k);
  const Expr n = kernel.variable(spec.n), element = operands.column(kernel, batch, k, n);
  const std::optional<loop::SizedLinear> form = load_index(element);
  if (!form) return std::nullopt;
  return ColumnSteps{step_along(*form, n), step_along(*form, k.back()), bool(narrow(element))};
}

// Along what elements of paired columns lie side by side.
std::optional<Neighbours> column_neighbours(KernelContext& kernel,
                                            const ContractionOperands& operands) {
  const ColumnSteps steps = column_steps(kernel, operands).value_or(ColumnSteps{});
  if (!steps.is_bf16) return std::nullopt;
  if (steps.element == Dim(1)) return Neighbours::elements;
  return steps.column == Dim(1) ? std::optional(Neighbours::columns) : std::nullopt;
}

Result<BufferId> pack(Lowering& lowering, const ContractionOperands& operands,
                      const PackedLayout& layout, const Node& node, Phase phase) {
  const DType dtype = operands.spec.is_paired ? DType::i32 : operands.spec.dtype;
  TensorType type{dtype, {Dim(layout.num_elements())}};
  const BufferId out = lowering.add_temporary(node, "_packed", type, layout.num_elements(), phase);
  const LaunchInfo info{"pack", &node, 0};
  KernelContext whole(lowering, phase, "pack");
  const std::optional<Neighbours> neighbours = column_neighbours(whole, operands);
  if (operands.spec.is_paired && neighbours) {
    const loop::BufferRef packed = whole.use(out, true);
    build_pair_packing(
        whole.kernel(), operands.spec, layout, packed,
        [&](Index batch, Index k, Expr n) { return narrow(operands.column(whole, batch, k, n)); },
        *neighbours, lowering.target());
    if (whole.error()) return *whole.error();
    LATHE_DO(lowering.emit_kernel(whole.kernel(), whole.buffers(), info, phase));
    return out;
  }
  for (const PanelRange& range : panel_ranges(operands.spec, layout)) {
    KernelContext kernel(lowering, phase, "pack");
    const loop::BufferRef packed = kernel.use(out, true);
    LoopNest nest = pack_nest(
        kernel.kernel(), operands.spec, layout, range, packed,
        [&](Index batch, Index k, Expr n) { return operands.column(kernel, batch, k, n); });
    if (kernel.error()) return *kernel.error();
    LATHE_DO(lowering.emit_kernel(schedule(std::move(nest), lowering.target()), kernel.buffers(),
                                  info, phase));
  }
  return out;
}

// True when consecutive columns of a row lie side by side in the result, so that vectors can be
// stored.
bool is_row_contiguous(KernelContext& probe, const ContractionOperands& operands, const Node& node,
                       BufferId out, const TensorType& type) {
  const ContractionSpec& spec = operands.spec;
  const loop::Var n = probe.fresh_var(spec.n);
  Epilogue epilogue(probe, node, out, type);
  const ResultElement result =
      epilogue.apply(operands.result_index(probe.variables(spec.batch), probe.variables(spec.m),
                                           probe.pool().var(n)),
                     probe.pool().number(0, spec.dtype));
  return spec.n == Dim(1) || moves_by_one(result.index, n);
}

class ContractionLowering {
 public:
  ContractionLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        columns_(context().resolve(root_.operands[1])) {}

  Result<Verdict> run(BufferId out) {
    if (const std::string why = symbolic_channels(); !why.empty()) return Verdict{why};
    const DType dtype = compute_dtype(root_.types[0].dtype);
    if (!is_float(dtype)) return Verdict{fmt::format("its dtype is {}", dtype_name(dtype))};
    LATHE_TRY(std::vector<ContractionOperands> products,
              contraction_operands(lowering_, root_, context(), phase_));
    for (ContractionOperands& product : products) {
      product.spec.dtype = dtype;
      product.spec.symbols = lowering_.symbols();
      product.spec.hints = lowering_.hints();
      if (std::count(product.spec.k.begin(), product.spec.k.end(), Dim(0)) > 0)
        return Verdict{"its sums are of nothing"};
    }
    if (products.empty())
      return Verdict{fmt::format("it is not one product, nor up to {} of them", kMostProducts)};
    products = in_parts(std::move(products));
    if (const std::string why = read_tile(products); !why.empty()) return Verdict{why};
    for (ContractionOperands& product : products) merge_rows(product, out);
    LATHE_DO(place_rows(products));
    KernelContext probe = context();
    if (is_row_contiguous(probe, products[0], node_, out, lowering_.buffer(out).type)) {
      LATHE_DO(emit(products, node_, out));
    } else {
      LATHE_DO(emit_in_two(products, out));
    }
    return Verdict{};
  }

 private:
  KernelContext context() const { return {lowering_, node_, phase_}; }

  // Of a convolution channels and filters are numbers.
  std::string symbolic_channels() const {
    if (root_.op->name != "convolution") return "";
    const TensorType &images = context().resolve(root_.operands[0]).type(),
                     &filters = columns_.type();
    if (!images.shape[1].is_const()) return fmt::format("its images are {}", to_string(images));
    return filters.is_static() ? "" : fmt::format("its filters are {}", to_string(filters));
  }

  // The tile that the plan asks for; what is wrong with it otherwise.
  std::string read_tile(std::vector<ContractionOperands>& products) const {
    if (!node_.plan || node_.plan->tile.empty()) return "";
    const int64_t rows = node_.plan->tile[0], vectors = node_.plan->tile[1];
    const int64_t most = lowering_.target().num_vector_registers;
    if (rows < 1 || vectors < 1 || rows > most || vectors > most || rows * vectors > most)
      return fmt::format("a tile of {}x{} does not fit {} registers of {}", rows, vectors, most,
                         lowering_.target().isa);
    for (ContractionOperands& product : products)
      product.spec.tile = RegisterTile{static_cast<int>(rows), static_cast<int>(vectors)};
    return "";
  }

  // A size of rows as one dim, where what they are made from and what they give lie as evenly.
  void merge_rows(ContractionOperands& product, BufferId out) {
    const std::vector<Dim> m = product.spec.m;
    const bool is_sized =
        std::any_of(m.begin(), m.end(), [](const Dim& d) { return !d.is_const(); });
    if (!is_sized || m.size() == 1) return;
    ContractionOperands merged = product;
    merged.spec.m = {1};
    for (const Dim& dim : m) merged.spec.m[0] = merged.spec.m[0] * dim;
    if (merged.spec.m[0].is_too_large()) return;
    const auto split = [m](Expr row) {
      size_t outermost = 0;  // of dims that have more than one element
      while (outermost + 1 < m.size() && m[outermost] == Dim(1)) ++outermost;
      std::vector<Expr> index(m.size(), row->pool->integer(0));
      for (size_t i = m.size(); i-- > outermost;) {
        const Expr extent = row->pool->size(m[i]);
        if (m[i] != Dim(1)) index[i] = i == outermost ? row : loop::mod(row, extent);
        row = loop::floor_div(row, extent);
      }
      return index;
    };
    merged.row_index = [split, of = product.row_index](Index batch, Index row, Index k) {
      return of(batch, split(row[0]), k);
    };
    merged.result_index = [split, of = product.result_index](Index batch, Index row, Expr n) {
      return of(batch, split(row[0]), n);
    };
    KernelContext probe = context();
    const std::optional<RowSteps> steps = row_steps(probe, merged);
    if (probe.error() || !steps || steps->row == Dim(0)) return;
    if (is_even(probe, merged, out)) product = std::move(merged);
  }

  // Whether results lie at even steps along the one dim of rows.
  bool is_even(KernelContext& probe, const ContractionOperands& operands, BufferId out) const {
    const ContractionSpec& spec = operands.spec;
    Epilogue epilogue(probe, node_, out, lowering_.buffer(out).type);
    const Expr row = probe.variable(spec.m[0]);
    const ResultElement result =
        epilogue.apply(operands.result_index(probe.variables(spec.batch), std::vector<Expr>{row},
                                             probe.variable(spec.n)),
                       probe.pool().number(0, spec.dtype));
    const loop::SizedLinear form = loop::sized(loop::linear(result.index));
    const loop::Var var = std::get<loop::VarRead>(row->kind).var;
    return std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
      return term.first == row || !loop::depends_on(term.first, var);
    });
  }

  // The rows where they are, when the template can walk them there, or in a copy.
  Status place_rows(std::vector<ContractionOperands>& products) {
    const ContractionOperands& first = products[0];
    KernelContext probe = context();
    const std::optional<RowSteps> steps = row_steps(probe, first);
    if (probe.error()) return *probe.error();
    if (first.rows_buffer < 0 && (!steps || is_turned(first.spec, *steps))) {
      LATHE_TRY(const BufferId copied, steps ? copy_to_layout(lowering_, first.rows, {}, phase_)
                                             : materialize_copy(lowering_, first.rows, phase_));
      for (ContractionOperands& product : products) product.rows_buffer = copied;
    }
    for (ContractionOperands& product : products) {
      KernelContext placed = context();
      const RowSteps own = row_steps(placed, product).value_or(RowSteps{});
      if (own.row.is_const())
        product.spec.row_bytes = own.row.value() * dtype_bytes(product.rows.type().dtype);
      const Dim reach = own.element * product.spec.k.back();
      product.spec.rows_overlap = own.row.is_const() && own.element.is_const() &&
                                  reach.is_const() && 0 < own.row.value() &&
                                  0 < own.element.value() && own.row.value() < reach.value();
      product.spec.is_paired = may_pair(product.spec) && own.is_bf16 && own.element == Dim(1);
    }
    return Ok{};
  }

  // For a single row it takes longer to pack columns than to multiply them.
  bool may_pair(const ContractionSpec& spec) const {
    const auto is_bf16 = [](Value value) { return value.type().dtype == DType::bf16; };
    const bool is_row =
        std::all_of(spec.m.begin(), spec.m.end(), [](const Dim& m) { return m == Dim(1); });
    return lowering_.target().has_pair_dot && spec.k.back().is_const() &&
           spec.k.back().value() > 1 && is_bf16(root_.operands[0]) && is_bf16(root_.operands[1]) &&
           (!is_row || lowering_.is_constant(columns_));
  }

  // Whether the pairs of a left matrix lie apart. More than a vector of columns pay for a copy.
  bool is_turned(const ContractionSpec& spec, const RowSteps& steps) const {
    return root_.op->name == "matmul" && may_pair(spec) && steps.element != Dim(1) &&
           !(spec.n.is_const() &&
             spec.n.value() <= lowering_.target().lanes(dtype_bytes(spec.dtype)));
  }

  // Columns that change from call to call, lie side by side and serve few rows.
  bool stay_in_place(const ContractionOperands& operands) {
    if (lowering_.is_constant(columns_)) return false;
    KernelContext probe = context();
    const std::optional<ColumnSteps> steps = column_steps(probe, operands);
    if (!steps || steps->column != Dim(1)) return false;
    const int64_t step_bytes =
        steps->element.is_const() ? steps->element.value() * dtype_bytes(columns_.type().dtype) : 0;
    return is_read_in_place(operands.spec, step_bytes, lowering_.target());
  }

  // `computed` is the contraction alone, or with its epilogue.
  Status emit(std::vector<ContractionOperands>& products, const Node& computed, BufferId out) {
    LaunchInfo info = describe(node_);
    info.flops = Dim::floor_div(info.flops, static_cast<int64_t>(products.size()));
    BufferId so_far = -1;
    for (ContractionOperands& product : products) {
      if (product.is_first && !product.is_last) so_far = add_sums(product.spec);
      KernelContext kernel = context();
      LATHE_DO(emit(kernel, product, computed, out, so_far, info));
    }
    return Ok{};
  }

  // Where the sums of parts are, by batch, row and column.
  BufferId add_sums(const ContractionSpec& spec) {
    TensorType type{spec.dtype, spec.batch};
    type.shape.insert(type.shape.end(), spec.m.begin(), spec.m.end());
    type.shape.push_back(spec.n);
    return lowering_.add_temporary(node_, "_so_far", type, type.num_elements(), phase_);
  }

  Status emit(KernelContext& kernel, ContractionOperands& operands, const Node& computed,
              BufferId out, BufferId so_far, const LaunchInfo& info) {
    if (stay_in_place(operands))
      operands.spec.b = [&](Index batch, Index k, Expr n) {
        return operands.column(kernel, batch, k, n);
      };
    const PackedLayout layout = packed_layout(operands.spec, lowering_.target());
    loop::BufferRef packed_ref;
    if (!operands.spec.b) {
      const bool is_constant = lowering_.is_constant(columns_) && layout.num_elements().is_const();
      const Phase pack_phase = is_constant ? Phase::init : phase_;
      LATHE_TRY(const BufferId packed, pack(lowering_, operands, layout, node_, pack_phase));
      packed_ref = kernel.use(packed);
    }
    Epilogue epilogue(kernel, computed, out, lowering_.buffer(out).type);
    operands.spec.a = [&](Index batch, Index m, Index k) {
      const Expr element = row_element(kernel, operands, operands.row_index(batch, m, k));
      return operands.spec.is_paired ? narrow(element) : element;
    };
    operands.spec.epilogue = [&](Index batch, Index m, Expr n, Expr sum) {
      std::vector<Expr> at(batch.begin(), batch.end());
      at.insert(at.end(), m.begin(), m.end());
      at.push_back(n);
      if (!operands.is_last) kernel.use(so_far, true);
      if (!operands.is_first) sum = kernel.load(so_far, at) + sum;
      if (!operands.is_last)
        return ResultElement{kernel.use(so_far, true),
                             kernel.address(lowering_.buffer(so_far).type, at), sum};
      const std::vector<Expr> index = operands.result_index(batch, m, n);
      if (operands.bias) sum = sum + kernel.element(operands.bias, std::vector<Expr>{index[1]});
      return epilogue.apply(index, sum);
    };
    build_contraction(kernel.kernel(), operands.spec, layout, packed_ref, lowering_.target());
    if (kernel.error()) return *kernel.error();
    return lowering_.emit_kernel(kernel.kernel(), kernel.buffers(), info, phase_);
  }

  // The sums with their columns side by side first; a loop then puts the results where they belong.
  Status emit_in_two(std::vector<ContractionOperands>& products, BufferId out) {
    TensorType type = root_.types[0];
    type.layout = root_.op->name == "convolution" ? channels_last(type.rank()) : Layout{};
    const BufferId sums =
        lowering_.add_temporary(node_, "_sums", type, type.num_elements(), phase_);
    LATHE_DO(emit(products, root_, sums));
    return emit_rest(lowering_, node_, root_, sums, out, phase_);
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  Value columns_;
};

Result<Verdict> emit_contraction(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                 Phase phase) {
  return ContractionLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_contraction() {
  return {
      .name = "contraction",
      .summary = "a tile of sums in registers, over packed columns: products and convolutions",
      .roots = {"convolution", "matmul"},
      .members = Members::epilogue,
      .needs = Needs::registers,
      .has_tile = true,
      .takes_sizes = true,
      .emit = emit_contraction,
      .example = R"(
func @main(%x: f32[40, 64], %w: f32[64, 48]) -> f32[40, 48] {
  %0 = matmul(%x, %w)
  return %0
}
)",
  };
}

}  // namespace lathe
