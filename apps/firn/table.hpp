// A plain table on stdout: the first columns left-aligned, numbers to the right.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace firn_cli {

class Table {
 public:
  // A header may have two lines, separated by '\n'. Columns from `first_right` on hold numbers.
  Table(std::vector<std::string> headers, std::size_t first_right);

  void add_row(std::vector<std::string> cells);  // one for each header
  void add_rule();
  std::string to_text() const;

 private:
  std::vector<std::string> headers_;
  std::size_t first_right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace firn_cli
