#include "pipelines/wavefront.hpp"

namespace firn::pipelines {

void Wavefront::reset_line(std::size_t count) {
  line_ = true;
  const std::size_t length = (count + kLanes - 1) / kLanes;
  extents_ = {1, 1, 1, length};
  lags_ = {0, 0, 0, 1};
  skew_ = 0;
  row_pitch_ = 1;
  plane_rows_ = kLanes;
  margin_ = 0;
  rows_.resize(kLanes);
  for (std::size_t r = 0; r < kLanes; ++r) {
    const std::size_t origin = std::min(r * length, count);
    rows_[r] = {origin, std::min(length, count - origin), 0};
  }
  runs_.push_back({0, static_cast<std::ptrdiff_t>(kLanes), 0, false});
  cell_count_ = kLanes * (length + lead() + kTrail);
  step_count_ = length;
}

void Wavefront::reset(int rank, const std::array<std::size_t, 4>& chunk, int fast) {
  rows_.clear();
  runs_.clear();
  real_.clear();
  value_lanes_.clear();
  padding_lanes_.clear();
  planes_ = 1;
  line_ = false;
  std::array<std::size_t, 4> chunk_lags{};
  std::size_t count = 1;
  for (int k = rank; k-- > 0;) {
    chunk_lags[static_cast<std::size_t>(k)] = count;
    count *= chunk[static_cast<std::size_t>(k)];
  }
  last_ = count - 1;
  extents_ = {1, 1, 1, 1};
  lags_ = {0, 0, 0, 0};
  if (fast == rank) return reset_line(count);
  extents_[3] = chunk[static_cast<std::size_t>(fast)];
  lags_[3] = chunk_lags[static_cast<std::size_t>(fast)];
  std::size_t place = 3;
  for (int k = rank; k-- > 0;) {
    const std::size_t extent = chunk[static_cast<std::size_t>(k)];
    if (k == fast || extent == 1) continue;
    --place;
    extents_[place] = extent;
    lags_[place] = chunk_lags[static_cast<std::size_t>(k)];
  }
  if (place == 3) return reset_line(count);

  const std::size_t columns = extents_[3] + lead() + kTrail;
  const std::size_t skew = std::max<std::size_t>(2, (columns + kLanes - 1) / kLanes);
  skew_ = static_cast<std::ptrdiff_t>(skew);
  row_pitch_ = 1 + static_cast<std::ptrdiff_t>(kLanes) * skew_;
  plane_rows_ = extents_[2] + kAbove + kBelow;
  planes_ = extents_[1] > 1 ? extents_[1] + 1 : 1;
  const std::size_t row_count = extents_[0] * planes_ * plane_rows_;
  rows_.resize(row_count);
  step_count_ = 0;
  const std::size_t first = planes_ - extents_[1];  // 1 when there is a plane before the first
  const auto plane_at = [&](std::size_t w, std::size_t z) {
    return static_cast<std::ptrdiff_t>((w * planes_ + z) * plane_rows_);
  };
  for (std::size_t w = 0; w < extents_[0]; ++w) {
    for (std::size_t z = 0; z < extents_[1]; ++z) {
      const std::ptrdiff_t begin = plane_at(w, z + first);
      Row* const rows = rows_.data() + begin;
      const std::ptrdiff_t before = z > 0   ? static_cast<std::ptrdiff_t>(plane_rows_)
                                    : w > 0 ? static_cast<std::ptrdiff_t>(planes_ * plane_rows_)
                                            : 0;
      for (std::size_t j = 0; j < kAbove; ++j) {
        const auto to_first = static_cast<std::ptrdiff_t>(kAbove - j);
        // The first row of the plane before; without one, the first row a step ago.
        rows[j].substitute = before > 0 ? (to_first - before) * row_pitch_
                                        : to_first - static_cast<std::ptrdiff_t>(kLanes);
      }
      for (std::size_t y = 0; y < extents_[2]; ++y) {
        rows[kAbove + y] = {w * lags_[0] + z * lags_[1] + y * lags_[2], extents_[3], 0};
      }
      rows[plane_rows_ - 1].substitute = -row_pitch_;
    }
    const int kind = w > 0 ? 2 : 0;
    runs_.push_back({plane_at(w, first), plane_at(w, first + 1), kind, extents_[1] > 1});
    if (extents_[1] > 1)
      runs_.push_back({plane_at(w, first + 1), plane_at(w + 1, 0), kind | 1, false});
  }
  for (const Run& run : runs_) {
    step_count_ += skew * (static_cast<std::size_t>(run.end - run.begin) - 1 + kLanes);
  }
  // Taps of the first row reach two rows and a few columns back.
  margin_ = 3 * row_pitch_ + static_cast<std::ptrdiff_t>(16 * kLanes);
  cell_count_ = static_cast<std::size_t>(margin_) +
                row_count * static_cast<std::size_t>(row_pitch_) + kLanes * kLanes * (skew + 4);

  real_.assign(row_count / 32 + 5, 0);
  for (std::size_t r = 0; r < row_count; ++r) {
    if (rows_[r].length != 0) real_[(r + 32) / 32] |= std::uint32_t{1} << (r % 32);
  }
  value_lanes_.assign(skew, 0);
  padding_lanes_.assign(skew, 0);
  for (std::size_t phase = 0; phase < skew; ++phase) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t column = phase + (kLanes - 1 - lane) * skew;
      const std::uint32_t bit = std::uint32_t{1} << lane;
      if (column >= columns) continue;
      const bool value = column >= lead() && column < lead() + extents_[3];
      (value ? value_lanes_ : padding_lanes_)[phase] |= bit;
    }
  }
}

}  // namespace firn::pipelines
