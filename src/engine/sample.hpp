// Parts of an array that stand for the whole: what they take under a bound tells what all will.
#pragma once

#include <firn/firn.hpp>
#include <optional>
#include <vector>

#include "pipelines/workers.hpp"
#include "plan/plan.hpp"

namespace firn::engine {

// What a value takes more in a box that is a part of a chunk than in the chunk, about.
inline constexpr double kBoxOverhead = 1.06;

// Boxes spread over an array, of `values` in total or a little more; whole chunks when those are
// small enough.
std::vector<Region> sample_regions(const Shape& shape, const Shape& chunk, std::uint64_t values);

// Bytes of the records that the regions would be. With `choices`, one for each region or none yet:
// encodes them in these ways, or makes the choices.
std::uint64_t encoded_bytes(const ArrayView& array, const plan::Plan& plan,
                            const std::vector<Region>& regions, pipelines::Workers& workers,
                            std::vector<pipelines::Choice>* choices = nullptr);

// How rough an array is, seen at points all over some regions of it: what differences along the
// two fastest axes leave of the values there. Masked and special points count as 0.
class Roughness {
 public:
  Roughness() = default;
  Roughness(const ArrayView& array, std::optional<double> fill, const std::vector<Region>& regions);

  // The bits that a value takes under a bound, about: good for comparing two of these.
  double bits(double bound_abs) const;
  double low() const { return low_; }
  double high() const { return high_; }
  // A magnitude below which are about an eighth of the values that are not 0; log2, to 8 octaves.
  int small_magnitude() const { return small_magnitude_; }

 private:
  std::vector<float> residuals_;  // times scale_
  double scale_ = 1;
  double low_ = 0, high_ = 0;  // of the values seen
  int small_magnitude_ = 0;
};

// Boxes of one shape from an array, put on each other along the slowest axis until they are as
// large as a chunk: as chunks they cost what chunks do.
class Stack {
 public:
  Stack() = default;
  Stack(Stack&&) = default;  // the array stays where it is
  Stack& operator=(Stack&&) = default;
  Stack(const ArrayView& array, const std::vector<Region>& boxes, std::uint64_t chunk_values);

  const ArrayView& array() const { return array_; }
  const std::vector<Region>& chunks() const { return chunks_; }
  const Shape& box() const { return box_; }
  std::uint64_t boxes() const { return array_.shape.extents[0] / box_.extents[0]; }

 private:
  std::vector<std::uint8_t> values_;
  Shape box_;
  ArrayView array_;
  std::vector<Region> chunks_;
};

// Of values, together.
struct Bits {
  double bits = 0, values = 0;

  double each() const { return bits / values; }
  void add(const Bits& other) {
    bits += other.bits;
    values += other.values;
  }
};

// Many small boxes from all over an array: more is seen of it than in a few chunks.
class Sample {
 public:
  Sample(const ArrayView& array, const Shape& chunk, std::optional<double> fill,
         std::uint64_t values);

  // Bits a value of the whole array under a plan, about. Tells how the chunks are to be encoded,
  // or does as it is told, like encoded_bytes().
  double bits(const plan::Plan& plan, pipelines::Workers& workers,
              std::vector<pipelines::Choice>* choices) const;
  // The bits that boxes take when nothing is lost, from one share of them to another.
  Bits lossless_bits(const plan::Plan& lossless, pipelines::Workers& workers, double from,
                     double to) const;
  // How many of them are for the borders that boxes have and chunks do not: the boxes are halved
  // along each axis but the fastest (a line's along it), and what the halves take more they take
  // for more borders. `sampled`: what bits() returned, with these choices.
  double border_bits(const plan::Plan& plan, double sampled, pipelines::Workers& workers,
                     std::vector<pipelines::Choice> choices);
  const Roughness& whole() const { return whole_; }
  std::uint64_t boxes() const { return boxes_.boxes(); }

 private:
  // The sample may be rougher or smoother than the whole.
  double to_whole(double bits, const plan::Plan& plan) const;
  // Of each of the stack's chunks the boxes from one share to another; from 0 on one at least.
  std::vector<Region> boxes_between(double from, double to) const;
  void cut();

  Shape chunk_;
  Stack boxes_, halves_;
  double share_ = 0;  // of what halves take more, that boxes take more than chunks
  Roughness whole_, sampled_;
};

}  // namespace firn::engine
