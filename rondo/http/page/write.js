// The Generate tab: streamed text, shaded by the contribution of the state, and saved states.
"use strict";

let abort = null;  // of the running request

// The events of a stream.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = text.slice(6, end);
      text = text.slice(end + 2);
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

// Spans of text, each with its token range, shaded when the gains arrive.
class ShadedText {
  constructor(output) {
    this.output = output;
    this.spans = [];
    this.tokens = 0;
    this.sum = 0;
    this.known = 0;
  }
  add(text, tokens) {
    const span = element("span", text);
    this.spans.push({ span, first: this.tokens, count: tokens, gains: [] });
    this.tokens += tokens;
    this.output.append(span);
  }
  shade(first, gains) {
    for (const [i, gain] of gains.entries()) {
      const place = this.spans.find((s) => first + i >= s.first && first + i < s.first + s.count);
      if (place) this.color(place, gain);
      this.sum += gain;
      this.known += 1;
    }
    $("mean-gain").textContent = (this.sum / this.known).toFixed(3);
  }
  color(place, gain) {
    place.gains.push(gain);
    const mean = place.gains.reduce((a, b) => a + b, 0) / place.gains.length;
    const strength = Math.min(0.75, Math.abs(mean) / 2);
    const kind = mean >= 0 ? "--better" : "--worse";
    place.span.style.background = strength < 0.02 ? "" : `rgba(var(${kind}), ${strength.toFixed(2)})`;
    place.span.title = `${mean >= 0 ? "+" : ""}${mean.toFixed(3)} nats`;
  }
  text() { return this.spans.map((s) => s.span.textContent).join(""); }
}

let shaded = null;

function settings(recurrent) {
  const body = {
    model: $("write-model").value, prompt: $("prompt").value, stream: true, logprobs: 0, stream_options: { include_usage: true },
    max_tokens: Number($("max_tokens").value), temperature: Number($("temperature").value), top_p: Number($("top_p").value),
    top_k: Number($("top_k").value), repetition_penalty: Number($("repetition_penalty").value), state_gain: recurrent,
  };
  if ($("seed").value !== "") body.seed = Number($("seed").value);
  if ($("stop-text").value) body.stop = [$("stop-text").value];
  if ($("from-state").value) body.state = $("from-state").value;
  if ($("save-state").value) body.save_state = $("save-state").value;
  return body;
}

function showPace(began, firstToken, tokens, usage) {
  const seconds = (performance.now() - began) / 1000;
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  $("pace").textContent = `${tokens} tokens, ${(tokens / seconds).toFixed(0)}/s, first token after ${firstToken.toFixed(0)} ms` +
    (usage ? `; prompt ${usage.prompt_tokens - cached} tokens` + (cached ? ` plus ${cached} from the state` : "") : "");
}

async function writeText(props) {
  const recurrent = props.language.find((m) => m.name === $("write-model").value)?.recurrent ?? false;
  $("output").replaceChildren(element("span", $("prompt").value, { className: "given" }));
  $("legend").hidden = !recurrent;
  $("go").disabled = true;
  $("stop").disabled = false;
  shaded = new ShadedText($("output"));
  abort = new AbortController();
  const began = performance.now();
  let firstToken = 0;
  let usage = null;
  try {
    const response = await post("/v1/completions", settings(recurrent), { signal: abort.signal });
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      if (event.usage) usage = event.usage;
      if (event.object === "rondo.state_gain") shaded.shade(event.first, event.gains);
      const choice = event.choices[0];
      if (!choice) continue;
      firstToken = firstToken || performance.now() - began;
      if (choice.text) shaded.add(choice.text, choice.logprobs?.tokens.length ?? 1);
      showPace(began, firstToken, shaded.tokens, null);
    }
    showPace(began, firstToken, shaded.tokens, usage);
  } finally {
    abort = null;
    $("go").disabled = false;
    $("stop").disabled = true;
    $("append").disabled = shaded.tokens === 0;
    await refreshStates();
  }
}

async function refreshStates() {
  const { states } = await (await call("/states")).json();
  const chosen = $("from-state").value;
  const first = $("from-state").options[0];
  $("from-state").replaceChildren(first);
  const rows = [];
  for (const state of states) {
    $("from-state").append(element("option", state.name, { value: state.name }));
    const row = element("tr", null);
    const actions = element("td", null, { className: "actions" });
    const act = (label, title, work) => actions.append(element("button", label, { className: "small", title, type: "button",
      onclick: () => guarded(work) }), " ");
    act("use", "Continue from this state", () => { $("from-state").value = state.name; $("prompt").focus(); });
    act("fork", "Copy under another name", () => forkState(state.name));
    act("↓", "Download the state file", () => downloadState(state.name));
    act("×", "Delete", async () => { await call("/states/" + state.name, { method: "DELETE" }); await refreshStates(); });
    row.append(element("td", state.name), element("td", state.tokens.toLocaleString("en")), element("td", human(state.bytes)), actions);
    rows.push(row);
  }
  $("from-state").value = states.some((s) => s.name === chosen) ? chosen : "";
  $("states").tBodies[0].replaceChildren(...rows);
}

async function forkState(name) {
  const { states } = await (await call("/states")).json();
  let number = 2;
  while (states.some((s) => s.name === `${name}-${number}`)) number++;
  await post(`/states/${name}/fork`, { to: `${name}-${number}` });
  await refreshStates();
}

async function downloadState(name) {
  const blob = await (await call("/states/" + name)).blob();
  const link = element("a", "", { href: URL.createObjectURL(blob), download: name + ".state" });
  link.click();
  URL.revokeObjectURL(link.href);
}

// The server accepts data only as fast as the model processes it, so upload progress is accurate.
function upload(method, path, file) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, path);
    for (const [name, value] of Object.entries(keyHeaders())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => { $("progress").value = event.loaded / event.total; };
    request.onload = () => {
      const reply = JSON.parse(request.responseText);
      if (request.status < 300) resolve(reply); else reject(new Error(reply.error.message));
    };
    request.onerror = () => reject(new Error("the upload was interrupted"));
    request.send(file);
  });
}

async function takeFile(file) {
  const restore = file.name.endsWith(".state");
  const name = file.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 64) || "document";
  $("progress").hidden = false;
  $("progress").value = 0;
  $("drop-note").textContent = restore ? `restoring ${name} …` : `processing ${name} …`;
  const began = performance.now();
  try {
    const made = restore ? await upload("PUT", `/states/${name}`, file)
      : await upload("POST", `/states?name=${name}&model=${encodeURIComponent($("write-model").value)}`, file);
    $("drop-note").textContent = `${made.name}: ${made.tokens.toLocaleString("en")} tokens in ` +
      `${((performance.now() - began) / 1000).toFixed(1)} s, saved in ${human(made.bytes)}`;
    await refreshStates();
    $("from-state").value = made.name;
  } catch (error) {
    $("drop-note").textContent = "";
    throw error;
  } finally {
    $("progress").hidden = true;
  }
}

ready.then((props) => {
  if (props.language.length === 0) return;
  fillModels("write-model", props.language);
  $("max_tokens").max = props.limits.max_tokens;
  $("write-form").addEventListener("submit", (event) => { event.preventDefault(); if (!abort) guarded(() => writeText(props)); });
  $("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("write-form").requestSubmit();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") abort?.abort(); });
  $("stop").addEventListener("click", () => abort?.abort());
  $("append").addEventListener("click", () => { $("prompt").value += shaded.text(); $("append").disabled = true; $("prompt").focus(); });
  dropZone($("drop"), $("file"), takeFile);
  guarded(refreshStates);
});
