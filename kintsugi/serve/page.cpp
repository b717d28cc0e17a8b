#include "kintsugi/serve/page.h"

namespace kintsugi::serve {

const std::string_view kPage = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%MODEL%</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem; }
  h1 { font-size: 1.1rem; }
  #log { min-height: 12rem; }
  .turn { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem .8rem; border-radius: .5rem; margin: .5rem 0; }
  .user { background: #8882; }
  .error { color: #c33; }
  textarea { width: 100%; box-sizing: border-box; font: inherit; }
  .row { display: flex; gap: .8rem; flex-wrap: wrap; align-items: center; margin: .5rem 0; }
  .row input { width: 5rem; font: inherit; }
  button { font: inherit; padding: .3rem 1rem; }
</style>
</head>
<body>
<h1>%MODEL%</h1>
<div id="log" aria-live="polite"></div>
<form id="form">
  <textarea id="prompt" rows="3" required aria-label="Text" placeholder="A text; Ctrl+Enter sends it"></textarea>
  <div class="row">
    <button id="send">Send</button>
    <button id="stop" type="button" disabled>Stop</button>
    <button id="clear" type="button">Clear</button>
    <label>Tokens <input id="tokens" type="number" min="1" value="200"></label>
    <label>Temperature <input id="temperature" type="number" min="0" max="2" step="0.1" value="0.8"></label>
    <label>top_p <input id="top_p" type="number" min="0.01" max="1" step="0.01" value="0.95"></label>
    <label>Key <input id="key" type="password" autocomplete="off"></label>
  </div>
</form>
<script>
const chats = %CHATS%, model = document.title, at = id => document.getElementById(id);
let turns = [], running = null;

function show(kind, text) {
  const turn = document.createElement("div");
  turn.className = "turn " + kind;
  turn.textContent = text;
  at("log").append(turn);
  turn.scrollIntoView({block: "nearest"});
  return turn;
}

// Calls take(object) for each event of a stream.
async function events(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "";;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts)
      if (part.startsWith("data: ") && part !== "data: [DONE]") take(JSON.parse(part.slice(6)));
  }
}

async function send(prompt) {
  show("user", prompt);
  turns.push({role: "user", content: prompt});
  const answer = show("model", ""), body = {model, stream: true, max_tokens: +at("tokens").value,
    temperature: +at("temperature").value, top_p: +at("top_p").value};
  if (chats) body.messages = turns; else body.prompt = prompt;
  const headers = {"Content-Type": "application/json"};
  if (at("key").value) headers.Authorization = "Bearer " + at("key").value;
  running = new AbortController();
  at("send").disabled = true, at("stop").disabled = false;
  try {
    const response = await fetch(chats ? "/v1/chat/completions" : "/v1/completions",
      {method: "POST", headers, body: JSON.stringify(body), signal: running.signal});
    if (!response.ok) throw new Error((await response.json()).error.message);
    await events(response, event => {
      if (event.error) throw new Error(event.error.message);
      for (const choice of event.choices)
        answer.textContent += (chats ? choice.delta.content : choice.text) ?? "";
    });
  } catch (error) {
    if (error.name !== "AbortError") show("error", error.message);
  }
  if (answer.textContent) turns.push({role: "assistant", content: answer.textContent}); else turns.pop();
  at("send").disabled = false, at("stop").disabled = true;
  running = null;
}

at("form").addEventListener("submit", event => {
  event.preventDefault();
  const prompt = at("prompt").value;
  if (running || !prompt) return;
  at("prompt").value = "";
  send(prompt);
});
at("prompt").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("stop").addEventListener("click", () => running?.abort());
at("clear").addEventListener("click", () => { running?.abort(); turns = []; at("log").replaceChildren(); });
</script>
</body>
</html>
)html";

}  // namespace kintsugi::serve
