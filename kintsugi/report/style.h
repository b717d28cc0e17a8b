// The style of a page: on a screen, light or dark; on a phone; on paper.
#pragma once

#include <string_view>

namespace kintsugi::report {

inline constexpr int kColours = 8;  // of curves: classes c0, c1, ...

inline constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c1c1e; --soft: #63636a; --line: #dcdce1; --shade: #f4f4f6;
  --edge: #c4c4cc; --gold: #a87b12; --mark: #fdf3d7; --bad: #c0392b;
  --c0: #0068a8; --c1: #d0580a; --c2: #00845f; --c3: #b03a86; --c4: #8a6d00; --c5: #2f9fd8; --c6: #6d48c4;
  --c7: #6a6a6a; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #141414; --ink: #e8e8ea; --soft: #a2a2aa; --line: #37373c; --shade: #1f1f22; --edge: #55555c;
    --gold: #d9a83a; --mark: #3a300f; --bad: #ff7b6b;
    --c0: #5ab4f0; --c1: #ff9c5a; --c2: #3fd0a4; --c3: #ee88c8; --c4: #d8ba4a; --c5: #a5dcff; --c6: #b39dff;
    --c7: #b5b5b5; }
  .picture svg { filter: invert(0.92) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif;
  -webkit-text-size-adjust: 100%; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.75rem; padding-bottom: 0.25rem; border-bottom: 2px solid var(--gold); }
h3 { font-size: 1rem; margin: 1.25rem 0 0.5rem; overflow-wrap: anywhere; }
p { margin: 0.5rem 0; }
ul { margin: 0.5rem 0; padding-left: 1.25rem; }
pre { background: var(--shade); padding: 0.6rem 0.8rem; margin: 0.5rem 0; overflow-x: auto; font-size: 0.85rem; }
footer, figcaption, .note { color: var(--soft); font-size: 0.85rem; }
footer { margin-top: 3rem; }
.scroll { overflow-x: auto; background:
    linear-gradient(to right, var(--paper) 30%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 30%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--edge), transparent) left / 0.8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--edge), transparent) right / 0.8rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; margin: 0.5rem 0; }
th, td { padding: 0.22rem 0.7rem 0.22rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
td + td, th + th { padding-left: 0.7rem; }
.r { text-align: right; white-space: nowrap; }
.wide td { white-space: nowrap; }
.marked td { background: var(--mark); }
details { margin: 0.75rem 0; }
summary { cursor: pointer; font-size: 0.95rem; }
.written { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--shade); padding: 0.5rem 0.8rem; }
figure { margin: 0; }
.samples { display: grid; grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: 0.75rem; margin: 0.75rem 0; }
.samples img { display: block; width: 5rem; height: 5rem; object-fit: contain; image-rendering: pixelated; }
.samples .wrong figcaption { color: var(--bad); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.5rem 2rem; }
.chart h3 { margin: 0 0 0.1rem; }
.plot { position: relative; height: 15rem; margin: 1.5rem 1.2rem 2.6rem 3.6rem; font-size: 0.78rem; color: var(--soft);
  font-variant-numeric: tabular-nums; }
.plot svg { display: block; width: 100%; height: 100%; overflow: visible; }
.plot path { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round;
  stroke-linecap: round; vector-effect: non-scaling-stroke; }
.plot .grid { stroke: var(--line); stroke-width: 1; }
.plot .axis { stroke: var(--soft); stroke-width: 1; }
.plot .faint { stroke-width: 1; stroke-opacity: 0.4; }
.plot .dots { stroke-width: 6; }
.plot .d1, .legend .d1 { stroke-dasharray: 9 5; }
.plot .d2, .legend .d2 { stroke-dasharray: 2.5 4; }
.plot .d3, .legend .d3 { stroke-dasharray: 11 4 2.5 4; }
.plot .lost { stroke: var(--bad); stroke-width: 1.5; }
.plot span { position: absolute; white-space: nowrap; line-height: 1; }
.plot .y { right: 100%; padding-right: 0.4rem; transform: translateY(-50%); }
.plot .x { top: 100%; padding-top: 0.4rem; transform: translateX(-50%); }
.plot .name-x { top: 100%; right: 0; padding-top: 1.4rem; }
.plot .name-y { bottom: 100%; left: -3.4rem; padding-bottom: 0.45rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; margin: 0; padding: 0; list-style: none;
  font-size: 0.85rem; }
.legend li { display: flex; align-items: center; gap: 0.4rem; overflow-wrap: anywhere; }
.legend svg { flex: none; width: 1.4rem; height: 0.7rem; }
.legend path { fill: none; stroke: currentColor; stroke-width: 2.5; }
.legend .box { stroke-width: 10; }
.narrow { display: none; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.picture { margin: 0.75rem 0; }
.picture svg { display: block; width: 100%; min-width: 44rem; height: auto; }
@media (max-width: 40rem) { main { padding: 0.5rem 0.75rem 2rem; } .plot { height: 12rem; }
  table { font-size: 0.8rem; } th.r { white-space: normal; }
  th, td { padding-right: 0.35rem; } td + td, th + th { padding-left: 0.35rem; } .picture svg { min-width: 34rem; }
  .legend.narrow { display: flex; }
  .wide { font-size: 0.8rem; }
  .wide td:first-child:not(.r) { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; } }
@media print {
  body { font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; background: none; }
  .picture svg { min-width: 0; }
  .chart, .picture, tr { break-inside: avoid; }
  h2, h3, summary { break-after: avoid; }
  .wide { font-size: 7.5pt; }
  .wide td { white-space: normal; }
  .wide td:first-child { overflow-wrap: anywhere; }
  .wide .r { white-space: nowrap; }
  pre { white-space: pre-wrap; }
  .plot { height: 5.2cm; }
  .charts { grid-template-columns: 1fr 1fr; }
}
)css";

}  // namespace kintsugi::report
