#include "kintsugi/report/svg.h"

#include "kintsugi/base/xml.h"

namespace kintsugi::report {

Svg::Svg(double width, double height, double left, const std::string& title) {
  add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" font-family="sans-serif" font-size="12">)",
      width, height);
  add(R"(<rect width="{}" height="{}" fill="#ffffff"/>)", width, height);
  add(R"(<text x="{}" y="20" font-size="14">{}</text>)", left, base::escape_xml(title));
}

std::string Svg::take() {
  text_ += "</svg>\n";
  return std::move(text_);
}

}  // namespace kintsugi::report
