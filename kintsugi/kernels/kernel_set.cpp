#include "kintsugi/kernels/kernel_set.h"

#include <algorithm>
#include <map>

namespace kintsugi::kernels {

bool Kernel::can(Capability capability, std::string_view name) const {
  return std::ranges::any_of(abilities, [&](const Ability& a) {
    return a.capability == capability && (a.names.empty() || std::ranges::find(a.names, name) != a.names.end());
  });
}

namespace {

// Restricts the capabilities of another set's kernels.
class Lesser : public KernelSet {
 public:
  Lesser(std::unique_ptr<KernelSet> set, bool epilogues) : set_(std::move(set)), epilogues_(epilogues) {}
  std::string_view name() const override { return set_->name(); }
  device::Device* device() const override { return set_->device(); }
  bool on_device() const override { return set_->on_device(); }
  bool tf32() const override { return set_->tf32(); }
  bool has(std::string_view kind) const override { return set_->has(kind); }
  const Kernel& find(std::string_view kind) const override {
    const Kernel& kernel = set_->find(kind);
    if (std::ranges::all_of(kernel.abilities, [&](const Ability& a) { return keeps(a.capability); })) return kernel;
    const auto [found, is_new] = lesser_.try_emplace(kernel.kind, kernel);
    auto& [lesser, abilities] = found->second;
    if (is_new) {
      for (const Ability& a : kernel.abilities)
        if (keeps(a.capability)) abilities.push_back(a);
      lesser.abilities = abilities;
    }
    return lesser;
  }
  bool sums_in_place() const override { return epilogues_ && set_->sums_in_place(); }

 private:
  struct Entry {
    explicit Entry(const Kernel& k) : kernel(k) {}
    Kernel kernel;
    std::vector<Ability> abilities;
  };

  bool keeps(Capability c) const {
    if (c == Capability::epilogue) return epilogues_;
    return c != Capability::add && c != Capability::row_sums && c != Capability::columns;
  }

  std::unique_ptr<KernelSet> set_;
  bool epilogues_;
  mutable std::map<std::string_view, Entry> lesser_;
};

}  // namespace

std::unique_ptr<KernelSet> without_epilogues(std::unique_ptr<KernelSet> set) {
  return std::make_unique<Lesser>(std::move(set), false);
}

std::unique_ptr<KernelSet> without_sums(std::unique_ptr<KernelSet> set) {
  return std::make_unique<Lesser>(std::move(set), true);
}

}  // namespace kintsugi::kernels
