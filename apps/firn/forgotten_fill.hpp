// A fill value that was not named makes the range, and with it most bounds, too large by far.
#pragma once

#include <cmath>
#include <cstdint>
#include <firn/firn.hpp>
#include <string>
#include <vector>

namespace firn_cli {

// Looks for such a value: one that is far from all others, under a bound that is large beside how
// much the others differ. Values are shown to it in any number of pieces.
class ForgottenFill {
 public:
  void look(double value) {
    if (count_++ == next_sample_) sample(value);
    const double size = std::fabs(value);
    if (size > others_ && std::isfinite(size)) look_at_large(value, size);
  }
  void look(const firn::ArrayView& field);  // contiguous
  void look_at_some(const firn::ArrayView& field);

  bool is_large(double bound_abs) const;  // beside how much the values differ
  // Empty when there seems to be none; otherwise what was seen, and `remedy` with the value in it,
  // such as "say --fill {}".
  std::string found(firn::Type type, double bound_abs, const char* remedy) const;

 private:
  template <class T>
  void look(const T* values, std::uint64_t count);
  void sample(double value);
  void look_at_large(double value, double size);
  double usual_spread() const;

  std::uint64_t count_ = 0;
  double farthest_ = 0;  // the value of the largest magnitude
  std::uint64_t times_ = 0;
  double others_ = 0;  // the largest magnitude of others
  // Evenly spaced ones of the values so far.
  std::vector<double> samples_;
  std::uint64_t next_sample_ = 0, spacing_ = 1;
};

// Whether a fill value that was not named would matter.
bool follows_range(const firn::Options& options);

// Says on standard error what look() finds in a whole field.
void tell_forgotten_fill(const firn::ArrayView& field, const firn::Options& options,
                         double bound_abs);
void tell_forgotten_fill(const ForgottenFill& seen, firn::Type type, double bound_abs);

}  // namespace firn_cli
