// Ranks, orders and places of one level.
#include "web/layout/layered.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lathe {
namespace {

constexpr int kOrderSweeps = 8;
constexpr int kPlaceSweeps = 10;
// A line's bends cost more than a box that is not above its neighbour.
constexpr double kLineWeight = 4;

// A box, or the place where a net passes through a rank.
struct Item {
  int rank = 0;
  double width = 0;
  double x = 0;  // of the middle
  double order = 0;
  bool is_line = false;
};
struct Link {
  size_t item;
  double offset = 0;      // on the other item
  double own_offset = 0;  // on this one
};

size_t index_of(const NetEnd& end) { return static_cast<size_t>(end.element); }

class RankLayout {
 public:
  RankLayout(const std::vector<Element>& elements, const std::vector<Net>& nets,
             const Spacing& spacing)
      : elements_(elements), nets_(nets), spacing_(spacing) {}

  Layered run() {
    choose_ranks();
    make_items();
    order_items();
    place_items();
    return finish();
  }

 private:
  void choose_ranks() {
    const size_t count = elements_.size();
    bool has_top = false;
    for (const Element& element : elements_) has_top = has_top || element.pin == Pin::top;
    std::vector<std::vector<size_t>> targets(count);
    std::vector<char> is_reached(count, 0);
    for (const Net& net : nets_)
      for (const NetEnd& target : net.targets) {
        targets[index_of(net.source)].push_back(index_of(target));
        is_reached[index_of(target)] = 1;
      }
    rank_.assign(count, has_top ? 1 : 0);
    int last = has_top ? 1 : 0;
    for (size_t i = 0; i < count; ++i) {
      if (elements_[i].pin == Pin::top) rank_[i] = 0;
      for (size_t target : targets[i])
        if (target > i) rank_[target] = std::max(rank_[target], rank_[i] + 1);
      if (elements_[i].pin != Pin::bottom) last = std::max(last, rank_[i]);
    }
    // What nothing reaches stands right above its first reader, not at the top.
    for (size_t i = 0; i < count; ++i) {
      if (is_reached[i] || targets[i].empty() || elements_[i].pin != Pin::none) continue;
      int first = last;
      for (size_t target : targets[i])
        if (elements_[target].pin != Pin::bottom) first = std::min(first, rank_[target] - 1);
      rank_[i] = std::max(rank_[i], first);
    }
    for (size_t i = 0; i < count; ++i)
      if (elements_[i].pin == Pin::bottom) rank_[i] = last + 1;
  }

  void make_items() {
    for (size_t i = 0; i < elements_.size(); ++i)
      add_item({.rank = rank_[i], .width = elements_[i].width});
    chains_.resize(nets_.size());
    for (size_t n = 0; n < nets_.size(); ++n) {
      const Net& net = nets_[n];
      const size_t source = index_of(net.source);
      int last = rank_[source];
      for (const NetEnd& target : net.targets) last = std::max(last, rank_[index_of(target)] - 1);
      size_t previous = source;
      double offset = net.source.offset;
      for (int rank = rank_[source] + 1; rank <= last; ++rank) {
        const size_t line = add_item({.rank = rank, .is_line = true});
        chains_[n].push_back(line);
        add_link(previous, offset, line, 0);
        previous = line;
        offset = 0;
      }
      for (const NetEnd& target : net.targets) {
        const size_t t = index_of(target);
        if (rank_[t] <= rank_[source]) continue;  // it goes up
        const size_t above = line_above(n, rank_[t]);
        add_link(above, above == source ? net.source.offset : 0, t, target.offset);
      }
    }
  }

  // The item of net `n` in the rank above `rank`.
  size_t line_above(size_t n, int rank) const {
    const size_t source = index_of(nets_[n].source);
    const int step = rank - 1 - rank_[source];
    return step <= 0 ? source : chains_[n][static_cast<size_t>(step) - 1];
  }

  size_t add_item(Item item) {
    const size_t id = items_.size();
    if (ranks_.size() <= static_cast<size_t>(item.rank))
      ranks_.resize(static_cast<size_t>(item.rank) + 1);
    ranks_[static_cast<size_t>(item.rank)].push_back(id);
    items_.push_back(item);
    above_.emplace_back();
    below_.emplace_back();
    return id;
  }
  void add_link(size_t upper, double upper_offset, size_t lower, double lower_offset) {
    below_[upper].push_back({lower, lower_offset, upper_offset});
    above_[lower].push_back({upper, upper_offset, lower_offset});
  }

  void number(const std::vector<size_t>& rank) {
    for (size_t i = 0; i < rank.size(); ++i) items_[rank[i]].order = static_cast<double>(i);
  }

  void order_items() {
    for (const auto& rank : ranks_) number(rank);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool is_down = sweep % 2 == 0;
      for (size_t step = 1; step < ranks_.size(); ++step)
        sort_rank(ranks_[is_down ? step : ranks_.size() - 1 - step], is_down ? above_ : below_);
    }
    for (auto& rank : ranks_) keep_old_order(rank);
  }

  void sort_rank(std::vector<size_t>& rank, const std::vector<std::vector<Link>>& links) {
    std::vector<std::pair<double, size_t>> keyed;
    for (size_t item : rank) {
      double sum = 0;
      for (const Link& link : links[item])
        sum += items_[link.item].order + link.offset / (1 + items_[link.item].width);
      const double count = static_cast<double>(links[item].size());
      keyed.push_back({links[item].empty() ? items_[item].order : sum / count, item});
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < rank.size(); ++i) rank[i] = keyed[i].second;
    number(rank);
  }

  // Among themselves, elements that were drawn before stand as they did.
  void keep_old_order(std::vector<size_t>& rank) {
    std::vector<size_t> slots, old;
    for (size_t i = 0; i < rank.size(); ++i)
      if (rank[i] < elements_.size() && elements_[rank[i]].has_place) {
        slots.push_back(i);
        old.push_back(rank[i]);
      }
    std::stable_sort(old.begin(), old.end(),
                     [&](size_t a, size_t b) { return elements_[a].place < elements_[b].place; });
    for (size_t i = 0; i < slots.size(); ++i) rank[slots[i]] = old[i];
    number(rank);
  }

  double gap(size_t left, size_t right) const {
    const bool is_line = items_[left].is_line && items_[right].is_line;
    return (items_[left].width + items_[right].width) / 2 +
           (is_line ? spacing_.between_lines : spacing_.between_boxes);
  }

  void place_items() {
    for (const auto& rank : ranks_) {
      double x = 0;
      for (size_t i = 0; i < rank.size(); ++i) {
        if (i > 0) x += gap(rank[i - 1], rank[i]);
        items_[rank[i]].x = x;
      }
      for (size_t item : rank) items_[item].x -= x / 2;
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool is_down = sweep % 2 == 0;
      for (size_t step = 0; step < ranks_.size(); ++step)
        relax(ranks_[is_down ? step : ranks_.size() - 1 - step], sweep);
    }
  }

  // Where the neighbours want the item: those of one side first, then of both.
  std::pair<double, double> wish(size_t item, int sweep) const {
    double sum = 0, weight = 0;
    auto add = [&](const std::vector<Link>& links) {
      for (const Link& link : links) {
        const bool is_line = items_[item].is_line && items_[link.item].is_line;
        const double w = is_line ? kLineWeight : 1;
        sum += w * (items_[link.item].x + link.offset - link.own_offset);
        weight += w;
      }
    };
    const bool uses_both = sweep >= kPlaceSweeps / 2;
    if (uses_both || sweep % 2 == 0) add(above_[item]);
    if (uses_both || sweep % 2 == 1) add(below_[item]);
    if (weight == 0) return {items_[item].x, 0.1};
    return {sum / weight, weight};
  }

  // Least squares of the wishes with the gaps kept: isotonic regression of the places less the
  // room that everything to the left takes.
  void relax(const std::vector<size_t>& rank, int sweep) {
    struct Pool {
      double mean, weight;
      size_t count;
    };
    std::vector<Pool> pools;
    std::vector<double> room(rank.size(), 0);
    for (size_t i = 0; i < rank.size(); ++i) {
      if (i > 0) room[i] = room[i - 1] + gap(rank[i - 1], rank[i]);
      auto [x, weight] = wish(rank[i], sweep);
      Pool pool{x - room[i], weight, 1};
      while (!pools.empty() && pools.back().mean > pool.mean) {
        const Pool& left = pools.back();
        const double both = left.weight + pool.weight;
        pool.mean = (left.mean * left.weight + pool.mean * pool.weight) / both;
        pool.weight = both;
        pool.count += left.count;
        pools.pop_back();
      }
      pools.push_back(pool);
    }
    size_t i = 0;
    for (const Pool& pool : pools)
      for (size_t k = 0; k < pool.count; ++k, ++i) items_[rank[i]].x = pool.mean + room[i];
  }

  Layered finish() {
    Layered result;
    double left = std::numeric_limits<double>::max(), right = -left;
    for (const Item& item : items_) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
    result.width = items_.empty() ? 0 : right - left;
    for (Item& item : items_) item.x -= left;
    std::vector<double> height(ranks_.size(), 0);
    for (size_t i = 0; i < elements_.size(); ++i) {
      double& tallest = height[static_cast<size_t>(rank_[i])];
      tallest = std::max(tallest, elements_[i].height);
    }
    top_.assign(ranks_.size() + 1, 0);
    for (size_t r = 0; r < ranks_.size(); ++r)
      top_[r + 1] = top_[r] + height[r] + spacing_.between_ranks;
    result.height = ranks_.empty() ? 0 : top_.back() - spacing_.between_ranks;
    for (size_t i = 0; i < elements_.size(); ++i) {
      const size_t rank = static_cast<size_t>(rank_[i]);
      const double y = top_[rank] + (height[rank] - elements_[i].height) / 2;
      result.places.push_back({items_[i].x - elements_[i].width / 2, y});
    }
    for (size_t n = 0; n < nets_.size(); ++n) {
      result.routes.emplace_back();
      for (const NetEnd& target : nets_[n].targets)
        result.routes.back().push_back(route(n, target, result, height));
    }
    result.ranks = rank_;
    return result;
  }

  std::vector<Point> route(size_t n, const NetEnd& target, const Layered& result,
                           const std::vector<double>& height) const {
    const size_t source = index_of(nets_[n].source);
    const size_t t = index_of(target);
    std::vector<Point> points = {{items_[source].x + nets_[n].source.offset,
                                  result.places[source].y + elements_[source].height}};
    for (int rank = rank_[source] + 1; rank < rank_[t]; ++rank) {
      const double x = items_[line_above(n, rank + 1)].x;
      const double y = top_[static_cast<size_t>(rank)];
      points.push_back({x, y});
      if (height[static_cast<size_t>(rank)] > 0)
        points.push_back({x, y + height[static_cast<size_t>(rank)]});
    }
    points.push_back({items_[t].x + target.offset, result.places[t].y});
    return points;
  }

  const std::vector<Element>& elements_;
  const std::vector<Net>& nets_;
  const Spacing spacing_;
  std::vector<int> rank_;    // of each element
  std::vector<Item> items_;  // the elements first
  std::vector<std::vector<Link>> above_, below_;
  std::vector<std::vector<size_t>> ranks_;
  std::vector<std::vector<size_t>> chains_;  // of each net: its lines, rank by rank
  std::vector<double> top_;                  // of each rank
};

}  // namespace

Layered lay_out_ranks(const std::vector<Element>& elements, const std::vector<Net>& nets,
                      const Spacing& spacing) {
  return RankLayout(elements, nets, spacing).run();
}

}  // namespace lathe
