// Attention through a library: as one launch where the library takes all of it, otherwise as two
// products with a softmax between them, whose scores go through memory.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/templates/loop_nest.h"
#include "passes/lowering/attention.h"
#include "passes/lowering/copy_price.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kRowStep = 8;      // elements: of 16 bits, a wide access
constexpr int64_t kMostDepth = 256;  // of heads that one launch takes
constexpr size_t kImageRank = 4;     // batch, heads, rows, columns

// In the products, where several heads share a key, the dim of the heads is two: the keys' and the
// heads of each, so that strides can say what is read.
class LibraryAttention {
 public:
  LibraryAttention(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        shape_(root_.types[0].shape),
        dtype_(root_.types[0].dtype) {}

  Result<Verdict> run(BufferId out) {
    const Value query = operand(0), key = operand(1), value = operand(2);
    const Shape &q = query.type().shape, &k = key.type().shape;
    for (Value each : {query, key, value})
      if (each.type().dtype != dtype_) return Verdict{"its operands are not of one dtype"};
    queries_ = q[q.size() - 2];
    keys_ = k[k.size() - 2];
    if (keys_ == Dim(0)) return Verdict{"it has no keys"};
    if (!has_terms(lowering_, keys_, shape_))
      return Verdict{fmt::format("it has no keys where {} is 0", keys_.str())};
    if (!q.back().is_const() || !shape_.back().is_const())
      return Verdict{fmt::format("the width of its heads is {}", q.back().str())};
    if (const std::string shared = make_batch(key.type()); !shared.empty()) return Verdict{shared};
    const TensorType& type = lowering_.buffer(out).type;
    const bool is_filled_up = may_be_whole() && !is_even();
    const Shape sums = is_filled_up ? filled_up(shape_) : shape_;
    const bool is_direct = node_.bodies.empty() && type.dtype == dtype_ && sums == shape_ &&
                           result(out, type, kernel_.variable(queries_),
                                  kernel_.variable(shape_.back()), queries_, shape_.back());
    const BufferId made = is_direct ? out : temporary("sums", dtype_, sums);
    LATHE_TRY(bool is_done, emit_whole(made));
    if (!is_done) {
      LATHE_TRY(is_done, emit_products(query, key, value, made));
    }
    if (!is_done) return Verdict{"strides cannot say where an operand lies"};
    LATHE_DO(emit_rest(lowering_, node_, root_, made, out, phase_));
    return Verdict{};
  }

 private:
  int64_t depth() const { return operand(0).type().shape.back().value(); }
  double scale() const { return attention_scale(root_, depth()); }

  bool is_even() const { return depth() % kRowStep == 0 && width() % kRowStep == 0; }
  int64_t width() const { return shape_.back().value(); }

  // Whether one launch may make it, which keeps the scores on the chip: of halves.
  bool may_be_whole() const {
    const Value mask = operand(3);
    return lowering_.refusal(node_, "attention") == nullptr && is_half(dtype_) && depth() > 0 &&
           width() > 0 && depth() <= kMostDepth && width() <= kMostDepth &&
           shape_.size() <= kImageRank && std::isfinite(scale()) &&
           (!mask || bias_dtype(mask) == dtype_ || bias_dtype(mask) == DType::f32) &&
           (is_even() || is_better_filled_up());
  }

  // Whether copies of all operands, with zeros behind each row, take less than scores that go
  // through memory: four times, in 12 bytes, with a launch for each that uneven rows make slow.
  bool is_better_filled_up() const {
    constexpr double kScoreBytes = 12, kUnevenSeconds = 10e-6;
    const auto size = [&](const Dim& d) {
      return static_cast<double>(size_at(d, lowering_.hints()));
    };
    double heads = 1;
    for (size_t d = 0; d + 2 < shape_.size(); ++d) heads *= size(shape_[d]);
    const double scores = heads * size(queries_) * size(keys_);
    double copies = 0;
    for (size_t i = 0; i < 3; ++i)
      copies += copy_seconds(2 * static_cast<double>(dtype_bytes(dtype_)) *
                             size(operand(i).type().num_elements()));
    if (width() % kRowStep != 0)
      copies += copy_seconds(2 * static_cast<double>(dtype_bytes(dtype_)) * heads * size(queries_) *
                             static_cast<double>(width()));
    return copies < copy_seconds(kScoreBytes * scores) + 2 * kUnevenSeconds;
  }

  // With rows as long as wide accesses want them.
  static Shape filled_up(Shape shape) {
    shape.back() = round_up(shape.back());
    return shape;
  }

  Result<bool> emit_whole(BufferId made) {
    if (!may_be_whole()) return false;
    const Shape result_shape = filled_up(shape_);
    const std::vector<Expr> vars = kernel_.variables(result_shape);
    auto place = place_result(lowering_, kernel_, made, lowering_.buffer(made).type, vars, vars,
                              queries_, result_shape.back());
    if (!place || !is_image(*place, result_shape)) return false;
    const Shape whole = image(shape_);
    const Dim heads = image(operand(1).type().shape)[1];
    for (size_t i = 0; i < 3; ++i) {
      const Shape own = image(operand(i).type().shape);
      if (own[0] != whole[0] || own[1] != (i == 0 ? whole[1] : heads)) return false;
    }
    if (Dim::mod(whole[1], heads) != Dim(0)) return false;
    AttentionCall call;
    LATHE_TRY(call.q, place_image(operand(0)));
    LATHE_TRY(call.k, place_image(operand(1)));
    LATHE_TRY(call.v, place_image(operand(2)));
    call.o = as_image(*place, result_shape);
    call.scale = scale();
    call.is_causal = root_.bool_attr("is_causal");
    if (const Value mask = operand(3)) {
      LATHE_TRY(call.bias, make_bias(mask));
    }
    lowering_.emit_library(std::move(call), describe(node_), phase_);
    return true;
  }

  // With leading dims of one element.
  static Shape image(Shape shape) {
    shape.insert(shape.begin(), kImageRank - shape.size(), Dim(1));
    return shape;
  }

  // Elements of a row side by side, rows where wide accesses may begin, and none read twice.
  bool is_image(const Strided& place, const Shape& shape) const {
    const auto is_whole = [](const Dim& size) { return Dim::mod(size, kRowStep) == Dim(0); };
    bool is_wide = is_whole(place.offset) && place.strides.back() == Dim(1);
    for (size_t i = 0; i + 1 < shape.size(); ++i)
      is_wide = is_wide && is_whole(place.strides[i]) &&
                (shape[i] == Dim(1) || is_at_least(lowering_, place.strides[i], 1));
    return is_wide;
  }

  Result<CallTensor> place_image(Value tensor) {
    const Shape& shape = tensor.type().shape;
    if (filled_up(shape) != shape) {
      const TensorType type{dtype_, filled_up(shape)};
      LATHE_TRY(const BufferId copy, copy_filled_up(lowering_, node_, tensor, type, "filled_up",
                                                    lowering_.phase_of(tensor, phase_)));
      return as_image({copy, 0, type.strides()}, type.shape);
    }
    const std::vector<Expr> vars = kernel_.variables(shape);
    std::optional<Strided> found = as_strided(kernel_, kernel_.element(tensor, vars), dtype_, vars);
    if (!found || !is_image(*found, shape)) {
      LATHE_DO(copy_operand(lowering_, kernel_, tensor));
      found = as_strided(kernel_, kernel_.element(tensor, vars), dtype_, vars);
    }
    if (kernel_.error()) return *kernel_.error();
    LATHE_CHECK(found.has_value(), "a copy that lies nowhere");
    return as_image(*found, shape);
  }

  // Dims of one element have no stride of their own: that of a packed tensor is as good as any.
  static CallTensor as_image(const Strided& place, const Shape& shape) {
    CallTensor tensor{place.buffer, place.offset, image(shape), place.strides};
    tensor.strides.insert(tensor.strides.begin(), kImageRank - place.strides.size(), Dim(0));
    Dim packed = 1;
    for (size_t i = kImageRank; i-- > 0; packed = packed * tensor.shape[i])
      if (tensor.shape[i] == Dim(1)) tensor.strides[i] = packed;
    return tensor;
  }

  DType bias_dtype(Value mask) const {
    return mask.type().dtype == DType::b8 ? dtype_ : mask.type().dtype;
  }

  // What the mask adds to the scores, in rows where wide accesses may begin: once for all
  // attentions that have it.
  Result<CallTensor> make_bias(Value mask) {
    const Shape own = image(mask.type().shape);
    Shape shape = own;
    shape[3] = round_up(keys_);
    const TensorType type{bias_dtype(mask), shape};
    const auto make = [&]() -> Result<BufferId> {
      const Phase phase = lowering_.phase_of(mask, phase_);
      const BufferId bias =
          lowering_.add_temporary(node_, "_bias", type, type.num_elements(), phase);
      KernelContext kernel(lowering_, phase, "bias");
      if (!node_.bodies.empty()) kernel.enter(node_);
      LATHE_DO(lowering_.emit_elements(kernel, bias, {"bias", &node_, 0}, [&](auto index) {
        return bias_element(kernel, mask, index);
      }));
      return bias;
    };
    LATHE_TRY(const BufferId made, lowering_.make_once(mask, "bias " + to_string(type), make));
    CallTensor bias{made, 0, image(shape_), type.strides()};
    bias.shape[3] = keys_;
    for (size_t d = 0; d < 3; ++d)
      if (own[d] == Dim(1)) bias.strides[d] = 0;
    return bias;
  }

  // Libraries scale by log2(e), beyond which the lowest numbers are infinite: those that are no
  // infinity stay numbers, since a query that sees nothing else then sees all keys alike.
  Expr bias_element(KernelContext& kernel, Value mask, std::span<const Expr> index) const {
    constexpr double kLowest = -1e38;
    std::vector<Expr> at(index.begin() + (4 - mask.type().rank()), index.end());
    if (mask.type().shape.back() == Dim(1))
      at.back() = kernel.integer(0);
    else if (round_up(keys_) != keys_)
      at.back() = loop::min(at.back(), kernel.pool().size(keys_ - 1));
    const Expr element = kernel.element_within(mask, at);
    const Expr zero = kernel.pool().number(0, compute_dtype(dtype_));
    const Expr least = loop::constant_like(zero, -std::numeric_limits<double>::infinity());
    if (element->dtype == DType::b8) return loop::select(element, zero, least);
    const Expr added = loop::cast(element, zero->dtype);
    return loop::select(loop::eq(added, least), least,
                        loop::max(added, loop::constant_like(added, kLowest)));
  }

  static Dim round_up(const Dim& size) {
    return Dim::floor_div(size + (kRowStep - 1), kRowStep) * kRowStep;
  }

  // How many queries have their scores in memory at a time: as many as the last cache has room
  // for, in parts alike, but in no more parts than a program should have launches for. A mask of
  // positions makes kernels of them.
  Dim rows_at_a_time() const {
    constexpr int64_t kStep = 64, kMostParts = 64, kMostKernels = 8;
    if (!queries_.is_const()) return queries_;
    const int64_t all = queries_.value();
    double bytes = static_cast<double>(all * dtype_bytes(compute_dtype(dtype_))) *
                   static_cast<double>(size_at(round_up(keys_), lowering_.hints()));
    for (size_t d = 0; d + 2 < shape_.size(); ++d)
      bytes *= static_cast<double>(size_at(shape_[d], lowering_.hints()));
    const bool has_positions = operand(3) || root_.bool_attr("is_causal");
    const double most = std::min<double>(has_positions ? kMostKernels : kMostParts,
                                         static_cast<double>(std::max<int64_t>(all, 1)));
    const double wanted = std::ceil(bytes / static_cast<double>(lowering_.target().l2_bytes));
    const auto parts = static_cast<int64_t>(std::clamp(wanted, 1.0, most));
    const int64_t rows = (all + parts - 1) / parts;
    return std::min(all, rows < kStep ? rows : (rows + kStep / 2) / kStep * kStep);
  }

  Result<bool> emit_products(Value query, Value key, Value value, BufferId made) {
    const Dim rows = rows_at_a_time();
    // Rows begin where wide accesses may: nobody reads what fills them up.
    Shape square(shape_.begin(), shape_.end() - 2);
    square.insert(square.end(), {rows, round_up(keys_)});
    const BufferId scored = temporary("scores", compute_dtype(dtype_), square);
    const BufferId weights = temporary("weights", dtype_, square);
    if (rows == queries_) return emit_rows({query, key, value, made, scored, weights}, rows, 0);
    // The last part takes some of the rows before it once more, rather than fewer.
    for (int64_t first = 0; first < queries_.value(); first += rows.value()) {
      first = std::min(first, queries_.value() - rows.value());
      LATHE_TRY(const bool is_done,
                emit_rows({query, key, value, made, scored, weights}, rows, first));
      if (!is_done) return false;
    }
    return true;
  }

  struct Parts {
    Value query, key, value;
    BufferId made, scored, weights;
  };

  // The results of `rows` queries from the `first`.
  Result<bool> emit_rows(const Parts& parts, const Dim& rows, int64_t first) {
    const Dim depth = this->depth(), width = shape_.back();
    const Expr i = kernel_.variable(rows), t = kernel_.variable(keys_), d = kernel_.variable(depth),
               e = kernel_.variable(width);
    const Expr row = first == 0 ? i : i + kernel_.integer(first);
    MatmulSpec scores{rows, keys_, depth, extents_, {}, {}, {}, {}};
    MatmulSpec sums{rows, width, keys_, extents_, {}, {}, {}, {}};
    if (depth != Dim(0)) {
      LATHE_TRY(auto a, place(parts.query, row, d, i, d, rows, depth));
      LATHE_TRY(auto b, place(parts.key, t, d, d, t, depth, keys_));
      if (!a || !b) return false;
      scores.a = *a;
      scores.b = *b;
    }
    LATHE_TRY(auto v, place(parts.value, t, e, t, e, keys_, width));
    if (!v) return false;
    const TensorType scored = lowering_.buffer(parts.scored).type,
                     weights = lowering_.buffer(parts.weights).type,
                     made = lowering_.buffer(parts.made).type;
    const Dim length = scored.shape.back();
    const auto products = result(parts.scored, scored, i, t, rows, length);
    const auto mixing = result(parts.weights, weights, i, t, rows, length);
    const auto mixed =
        place_result(lowering_, kernel_, parts.made, made, attention_index(batch_, row, e),
                     attention_index(vars_, i, e), rows, width);
    if (!products || !mixing || !mixed) return false;
    scores.d = *products;
    LaunchInfo info = describe(node_);
    info.flops = Dim::floor_div(info.flops * rows, queries_ * Dim(2));
    info.label += "_scores";
    if (depth != Dim(0)) emit_matmul(lowering_, scores, info, phase_);
    if (depth == Dim(0)) LATHE_DO(emit_zeros(parts.scored, info));
    LATHE_DO(emit_softmax(parts.scored, parts.weights, first));

    sums.a = *mixing;
    sums.b = *v;
    sums.d = *mixed;
    info.label = describe(node_).label + "_values";
    emit_matmul(lowering_, sums, info, phase_);
    return true;
  }

  // The products of nothing, which no library takes.
  Status emit_zeros(BufferId scored, const LaunchInfo& info) {
    KernelContext kernel(lowering_, phase_, "scores");
    const Expr zero = kernel.pool().number(0, compute_dtype(dtype_));
    return lowering_.emit_elements(kernel, scored, info,
                                   [&](std::span<const Expr>) { return zero; });
  }

  Value operand(size_t i) const {
    return i < root_.operands.size() ? kernel_.resolve(root_.operands[i]) : Value{};
  }

  BufferId temporary(const std::string& name, DType dtype, const Shape& shape) {
    const TensorType type{dtype, shape};
    return lowering_.add_temporary(node_, "_" + name, type, type.num_elements(), phase_);
  }

  // Why strides cannot say it, or "".
  std::string make_batch(const TensorType& key) {
    const size_t num_batch = shape_.size() - 2, own = key.shape.size() - 2;
    for (size_t d = 0; d < num_batch; ++d) {
      const bool is_shared = d + own >= num_batch;
      const Dim heads = is_shared ? key.shape[d + own - num_batch] : Dim(1);
      const bool are_numbers = heads.is_const() && shape_[d].is_const();
      if (!are_numbers && heads != Dim(1) && heads != shape_[d])
        return fmt::format("{} of its heads share {} keys", shape_[d].str(), heads.str());
      const bool is_grouped = are_numbers && heads.value() > 1 && heads.value() < shape_[d].value();
      const Dim outer = is_grouped ? heads : Dim(1);
      const Dim inner = is_grouped ? Dim(shape_[d].value() / heads.value()) : shape_[d];
      Expr at = kernel_.variable(inner);
      if (is_grouped) {
        vars_.push_back(kernel_.variable(outer));
        extents_.push_back(outer);
        batch_.push_back(vars_.back() * kernel_.integer(inner.value()) + at);
      } else {
        batch_.push_back(at);
      }
      vars_.push_back(at);
      extents_.push_back(inner);
    }
    return "";
  }

  // Element (row, column) of a tensor, as a matrix over (m, n), which are these in some order.
  Result<std::optional<Strided>> place(Value tensor, Expr row, Expr column, Expr m, Expr n,
                                       const Dim& rows, const Dim& columns) {
    const std::vector<Expr> index = attention_operand_index(
        kernel_, tensor.type().shape, root_.types[0].shape, batch_, row, column);
    return place_operand(lowering_, kernel_, tensor, index, attention_index(vars_, m, n), rows,
                         columns);
  }

  std::optional<Strided> result(BufferId buffer, const TensorType& type, Expr row, Expr column,
                                const Dim& rows, const Dim& columns) {
    return place_result(lowering_, kernel_, buffer, type, attention_index(batch_, row, column),
                        attention_index(vars_, row, column), rows, columns);
  }

  // Of the rows from the `first`. One whose scores are all -inf gives zeros, as PyTorch's does.
  Status emit_softmax(BufferId scored, BufferId weights, int64_t first) {
    KernelContext kernel(lowering_, phase_, "softmax");
    if (!node_.bodies.empty()) kernel.enter(node_);
    const TensorType& type = lowering_.buffer(scored).type;
    const Value mask = operand(3);
    const double scale = this->scale();
    const bool is_causal = root_.bool_attr("is_causal");
    const double least = -std::numeric_limits<double>::infinity();
    return lowering_.emit_elements(
        kernel, weights, {"softmax", &node_, 0}, [&](std::span<const Expr> index) {
          const Expr own = index[index.size() - 2];
          const Expr row = first == 0 ? own : own + kernel.integer(first);
          const bool is_filled = type.shape.back() != keys_;
          auto score = [&](Expr t, bool may_be_beyond = false) {
            std::vector<Expr> at(index.begin(), index.end());
            at.back() = t;
            Expr x = kernel.load(scored, type, at) * scale;
            if (may_be_beyond) t = loop::min(t, kernel.pool().size(keys_ - 1));
            if (mask) x = masked_score(kernel, mask, index.first(index.size() - 2), row, t, x);
            if (is_causal) x = loop::select(loop::le(t, row), x, loop::constant_like(x, least));
            return x;
          };
          const std::vector<Dim> keys = {keys_};
          const Expr most = kernel.reduce(loop::ReduceOp::max, keys,
                                          [&](std::span<const Expr> r) { return score(r[0]); });
          const Expr top = loop::select(loop::eq(most, loop::constant_like(most, least)),
                                        loop::constant_like(most, 0), most);
          const Expr sum = kernel.reduce(loop::ReduceOp::sum, keys,
                                         [&](auto r) { return loop::exp(score(r[0]) - top); });
          const Expr none = loop::constant_like(sum, 0), one = loop::constant_like(sum, 1);
          const Expr divisor = loop::select(loop::eq(sum, none), one, sum);
          return loop::exp(score(index.back(), is_filled) - top) / divisor;
        });
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  Shape shape_;
  DType dtype_;
  Dim queries_ = 1, keys_ = 1;
  std::vector<Expr> batch_;  // the index of each batch dim of the result
  std::vector<Expr> vars_;   // what strides are over
  Shape extents_;            // of those
};

Result<Verdict> emit_library_attention(Lowering& lowering, Node& node,
                                       std::span<const Destination> outs, Phase phase) {
  return LibraryAttention(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_attention() {
  return {
      .name = "library_attention",
      .summary = "attention by the library of the target, or as two of its products and a softmax",
      .roots = {"attention"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .takes_sizes = true,
      .emit = emit_library_attention,
      .example = R"(
func @main(%q: f16[2, 16, 64], %k: f16[2, 16, 64], %v: f16[2, 16, 64]) -> f16[2, 16, 64] {
  %0 = attention(%q, %k, %v)
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
