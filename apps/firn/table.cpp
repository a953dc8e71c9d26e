#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace firn_cli {
namespace {

std::string line_of(const std::string& text, std::size_t line) {
  const std::size_t newline = text.find('\n');
  if (line == 0) return text.substr(0, newline);
  return newline == std::string::npos ? "" : text.substr(newline + 1);
}

}  // namespace

Table::Table(std::vector<std::string> headers, std::size_t first_right)
    : headers_(std::move(headers)), first_right_(first_right) {}

void Table::add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::to_text() const {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t line = 0; line < 2; ++line) {
    std::vector<std::string> cells;
    for (const std::string& header : headers_) cells.push_back(line_of(header, line));
    const bool blank = std::all_of(cells.begin(), cells.end(),
                                   [](const std::string& cell) { return cell.empty(); });
    if (!blank) lines.push_back(std::move(cells));
  }
  lines.emplace_back();
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(headers_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string out;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) out += "  ";
      if (line.empty()) {
        out += std::string(widths[i], '-');
      } else if (i < first_right_) {
        out += fmt::format("{:<{}}", line[i], widths[i]);
      } else {
        out += fmt::format("{:>{}}", line[i], widths[i]);
      }
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + '\n';
  }
  return text;
}

}  // namespace firn_cli
