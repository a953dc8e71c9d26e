// The power spectrum's error. Original and decoded field are transformed together, as real and
// imaginary part of one complex field.
#include <algorithm>
#include <cmath>
#include <vector>

#include "metrics/fourier.hpp"
#include "metrics/parts.hpp"

namespace firn::metrics {
namespace {

constexpr std::uint64_t kMaxShells = 512;
constexpr std::uint64_t kLinesAtOnce = 16;
constexpr std::uint64_t kRowsPerPiece = 256;

// A box of at most `max_values` values a frame in the middle of the field: the longest axis is
// halved until it fits. Rank 4 is a series of frames.
Region centred_box(const Shape& shape, std::uint64_t max_values, int first_axis) {
  Region box;
  box.shape = shape;
  const auto frame_values = [&] {
    std::uint64_t product = 1;
    for (int k = first_axis; k < shape.rank; ++k) product *= box.shape.extents[k];
    return product;
  };
  while (frame_values() > max_values) {
    const auto begin = box.shape.extents.begin();
    std::uint64_t& longest = *std::max_element(begin + first_axis, begin + shape.rank);
    longest = (longest + 1) / 2;
  }
  for (int k = 0; k < shape.rank; ++k) {
    box.origin[k] = (shape.extents[k] - box.shape.extents[k]) / 2;
  }
  return box;
}

struct Power {
  std::vector<double> original, decoded;

  explicit Power(std::size_t shells) : original(shells), decoded(shells) {}
  void add(const Power& other) {
    for (std::size_t s = 0; s < original.size(); ++s) {
      original[s] += other.original[s];
      decoded[s] += other.decoded[s];
    }
  }
};

// One frame: a box of up to three axes.
class Frame {
 public:
  Frame(const std::array<std::uint64_t, 3>& extents, pipelines::Workers& workers)
      : extents_(extents), workers_(workers), values_(extents[0] * extents[1] * extents[2]) {
    for (const std::uint64_t extent : extents) transforms_.emplace_back(extent);
  }

  std::uint64_t rows() const { return extents_[0] * extents_[1]; }
  Complex* row(std::uint64_t number) { return values_.data() + number * extents_[2]; }

  void transform() {
    for (int axis = 0; axis < 3; ++axis) {
      if (extents_[axis] > 1) transform_axis(axis);
    }
  }

  // Adds the power in each shell: 2 * shells * frequency, rounded; 0 counts as 1.
  void add_power(Power& power) const {
    const std::size_t shells = power.original.size();
    const double n = static_cast<double>(values_.size());
    std::vector<Power> pieces((rows() + kRowsPerPiece - 1) / kRowsPerPiece, Power(shells));
    workers_.for_each(pieces.size(), [&](std::uint64_t number, auto&) {
      Power& piece = pieces[number];
      const std::uint64_t end = std::min(rows(), (number + 1) * kRowsPerPiece);
      for (std::uint64_t row = number * kRowsPerPiece; row < end; ++row) {
        const std::uint64_t z = row / extents_[1], y = row % extents_[1];
        const double fz = frequency(z, 0), fy = frequency(y, 1);
        const Complex* values = values_.data() + row * extents_[2];
        // Of the opposite frequency.
        const Complex* opposite =
            values_.data() + (mirrored(z, 0) * extents_[1] + mirrored(y, 1)) * extents_[2];
        for (std::uint64_t x = 0; x < extents_[2]; ++x) {
          const double fx = frequency(x, 2);
          const double length = std::sqrt(fz * fz + fy * fy + fx * fx);
          if (length == 0) continue;
          const auto shell = std::max<std::size_t>(
              1, static_cast<std::size_t>(2 * static_cast<double>(shells) * length + 0.5));
          if (shell > shells) continue;
          const Complex here = values[x] / n;
          const Complex there = std::conj(opposite[mirrored(x, 2)]) / n;
          piece.original[shell - 1] += std::norm(here + there) / 4;
          piece.decoded[shell - 1] += std::norm(here - there) / 4;
        }
      }
      return true;
    });
    for (const Power& piece : pieces) power.add(piece);
  }

 private:
  std::uint64_t mirrored(std::uint64_t at, int axis) const {
    return at == 0 ? 0 : extents_[axis] - at;
  }
  double frequency(std::uint64_t at, int axis) const {
    return static_cast<double>(std::min(at, extents_[axis] - at)) /
           static_cast<double>(extents_[axis]);
  }

  // Lines along `axis`, some neighbours at a time so that whole cache lines are used.
  void transform_axis(int axis) {
    std::uint64_t stride = 1;
    for (int k = axis + 1; k < 3; ++k) stride *= extents_[k];
    const std::uint64_t length = extents_[axis];
    const std::uint64_t groups = (stride + kLinesAtOnce - 1) / kLinesAtOnce;
    const std::uint64_t blocks = values_.size() / (length * stride);
    workers_.for_each(blocks * groups, [&](std::uint64_t number, auto&) {
      const std::uint64_t first = number % groups * kLinesAtOnce;
      const std::uint64_t lines = std::min(kLinesAtOnce, stride - first);
      Complex* const begin = values_.data() + number / groups * length * stride + first;
      std::vector<Complex> block(lines * length), scratch;
      for (std::uint64_t i = 0; i < length; ++i) {
        for (std::uint64_t j = 0; j < lines; ++j) block[j * length + i] = begin[i * stride + j];
      }
      for (std::uint64_t j = 0; j < lines; ++j) {
        transforms_[static_cast<std::size_t>(axis)].run(block.data() + j * length, scratch);
      }
      for (std::uint64_t i = 0; i < length; ++i) {
        for (std::uint64_t j = 0; j < lines; ++j) begin[i * stride + j] = block[j * length + i];
      }
      return true;
    });
  }

  std::array<std::uint64_t, 3> extents_;
  pipelines::Workers& workers_;
  std::vector<Complex> values_;
  std::vector<FourierTransform> transforms_;
};

}  // namespace

std::optional<Metrics::Spectrum> measure_spectrum(const PairReader& pair, std::uint64_t max_values,
                                                  pipelines::Workers& workers) {
  const Shape& shape = pair.shape();
  const int first_axis = shape.rank == kMaxRank ? 1 : 0;
  const Region box = centred_box(shape, std::max<std::uint64_t>(1, max_values), first_axis);
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  for (int k = first_axis; k < shape.rank; ++k) {
    extents[static_cast<std::size_t>(k + 3 - shape.rank)] = box.shape.extents[k];
  }
  const std::uint64_t longest = *std::max_element(extents.begin(), extents.end());
  if (longest < 2 || shape.count() == 0) return {};
  const std::uint64_t frames = first_axis == 1 ? shape.extents[0] : 1;
  Power power(std::min(longest / 2, kMaxShells));
  Frame frame(extents, workers);
  const int last = shape.rank - 1;
  for (std::uint64_t t = 0; t < frames; ++t) {
    std::vector<double> row_sums(frame.rows());
    std::vector<std::uint64_t> row_counts(frame.rows());
    const auto place_of = [&](std::uint64_t row) {
      Position at = box.origin;
      if (first_axis == 1) at[0] = t;
      if (last >= 1) at[last - 1] += row % extents[1];
      if (last >= 2) at[last - 2] += row / extents[1];
      return at;
    };
    workers.for_each(frame.rows(), [&](std::uint64_t row, auto&) {
      std::vector<double> values(extents[2]), errors(extents[2]);
      pair.read(place_of(row), extents[2], values.data(), errors.data());
      Complex* const out = frame.row(row);
      for (std::uint64_t x = 0; x < extents[2]; ++x) {
        out[x] = {values[x], values[x] + errors[x]};
        if (std::isnan(values[x])) continue;
        row_sums[row] += values[x];
        ++row_counts[row];
      }
      return true;
    });
    double sum = 0;
    std::uint64_t count = 0;
    for (std::uint64_t row = 0; row < frame.rows(); ++row) {
      sum += row_sums[row];
      count += row_counts[row];
    }
    // Excluded values take the mean, and the mean is taken out.
    const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
    workers.for_each(frame.rows(), [&](std::uint64_t row, auto&) {
      Complex* const out = frame.row(row);
      for (std::uint64_t x = 0; x < extents[2]; ++x) {
        out[x] = std::isnan(out[x].real()) ? Complex{} : out[x] - Complex{mean, mean};
      }
      return true;
    });
    frame.transform();
    frame.add_power(power);
  }
  Metrics::Spectrum spectrum;
  spectrum.box = box.shape;
  spectrum.original = std::move(power.original);
  spectrum.decoded = std::move(power.decoded);
  const std::size_t shells = spectrum.original.size();
  for (std::size_t s = 0; s < shells; ++s) {
    double& original = spectrum.original[s];
    double& decoded = spectrum.decoded[s];
    original /= static_cast<double>(frames);
    decoded /= static_cast<double>(frames);
    if (original == 0) continue;
    const double error = std::fabs(decoded / original - 1);
    spectrum.max_relative_error = std::max(spectrum.max_relative_error, error);
    if (2 * s < shells) {
      spectrum.max_relative_error_low_half = std::max(spectrum.max_relative_error_low_half, error);
    }
  }
  return spectrum;
}

}  // namespace firn::metrics
