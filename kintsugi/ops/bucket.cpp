// Between a bucket [shard flat] of one weight and the weight's own dims. The partitioner alone emits them.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow from_bucket() {
  return {.kind = "from_bucket", .ins = {"x"}, .outs = {"y"}, .bucket = true, .keeps_zero = true};
}

OpRow to_bucket() {
  return {.kind = "to_bucket", .ins = {"x"}, .outs = {"y"}, .bucket = true, .keeps_zero = true};
}

}  // namespace kintsugi::ops
