#include "kintsugi/config/choices.h"

#include "kintsugi/base/error.h"

namespace kintsugi::config {

std::string_view name_of(Recomputed what) {
  switch (what) {
    case Recomputed::nothing:
      return "none";
    case Recomputed::attention:
      return "selective";
    case Recomputed::layers:
      return "full";
  }
  throw base::InternalError("config", "nothing is recomputed so: {}", static_cast<int>(what));
}

Recomputed recomputed(const Parallel& p) {
  for (Recomputed what : {Recomputed::nothing, Recomputed::attention, Recomputed::layers})
    if (p.recompute == name_of(what)) return what;
  throw base::InternalError("config", "recompute \"{}\" was not checked", p.recompute);
}

std::string_view name_of(Offloaded what) {
  if (what.optimizer) return what.activations ? "all" : "optimizer";
  return what.activations ? "activations" : "none";
}

Offloaded offloaded(const Parallel& p) {
  for (bool optimizer : {false, true})
    for (bool activations : {false, true}) {
      const Offloaded what = {.optimizer = optimizer, .activations = activations};
      if (p.offload == name_of(what)) return what;
    }
  throw base::InternalError("config", "offload \"{}\" was not checked", p.offload);
}

}  // namespace kintsugi::config
