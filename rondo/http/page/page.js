// Shared by all tabs: server calls, tab switching, the footer.
"use strict";

const $ = (id) => document.getElementById(id);

function showMessage(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

async function askForKey() {
  const dialog = $("key-dialog");
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  sessionStorage.setItem("rondo-key", $("key").value);
}

function keyHeaders() {
  const key = sessionStorage.getItem("rondo-key");
  return key ? { Authorization: "Bearer " + key } : {};
}

// fetch() that asks for a key when one is needed and throws the server's message.
async function call(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { ...options.headers, ...keyHeaders() } });
  if (response.status === 401) {
    await askForKey();
    return call(path, options);
  }
  if (!response.ok) {
    const error = await response.json().catch(() => null);
    throw new Error(error?.error?.message ?? `${path}: status ${response.status}`);
  }
  return response;
}

async function post(path, body, options = {}) {
  return call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), ...options });
}

// Runs `work` and shows any error.
async function guarded(work) {
  showMessage("");
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") showMessage(error.message);
  }
}

function human(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) { bytes /= 1024; unit++; }
  return `${bytes.toPrecision(3)} ${units[unit]}`;
}

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  Object.assign(made, attributes);
  return made;
}

// A drop target for a file, which can also be chosen with a click, Enter or Space.
function dropZone(zone, input, use) {
  const open = () => input.click();
  zone.addEventListener("click", (event) => { if (event.target !== input) open(); });
  zone.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
  });
  input.addEventListener("change", () => { if (input.files[0]) guarded(() => use(input.files[0])); input.value = ""; });
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) guarded(() => use(event.dataTransfer.files[0]));
  });
}

const tabs = ["write", "translate", "classify"];

function selectTab(name) {
  for (const tab of tabs) {
    const chosen = tab === name;
    $(tab).hidden = !chosen;
    $("tab-" + tab).setAttribute("aria-selected", chosen);
    $("tab-" + tab).tabIndex = chosen ? 0 : -1;
  }
  history.replaceState(null, "", "#" + name);
}

function prepareTabs() {
  for (const tab of tabs) $("tab-" + tab).addEventListener("click", () => selectTab(tab));
  document.querySelector("nav").addEventListener("keydown", (event) => {
    const shown = tabs.filter((tab) => !$("tab-" + tab).hidden);
    const at = shown.findIndex((tab) => $("tab-" + tab) === document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || at < 0) return;
    const next = shown[(at + step + shown.length) % shown.length];
    selectTab(next);
    $("tab-" + next).focus();
  });
}

function fillModels(id, models) {
  for (const model of models) $(id).append(element("option", model.name, { value: model.name }));
}

let lastTokens = null;

async function refreshStatus() {
  if (document.hidden) return;
  try {
    const now = performance.now();
    const props = await (await call("/props")).json();
    const pace = lastTokens ? (1000 * (props.completion_tokens - lastTokens.tokens)) / (now - lastTokens.at) : 0;
    lastTokens = { at: now, tokens: props.completion_tokens };
    $("status").textContent = `${pace.toFixed(0)} tokens/s · ${props.running} running · ${props.queued} queued · ` +
      `${human(props.memory_bytes)} memory · rondo ${props.version}`;
  } catch {
    $("status").textContent = "the server is not responding";
  }
}

const ready = new Promise((resolve) => {
  window.addEventListener("DOMContentLoaded", () => guarded(async () => {
    prepareTabs();
    const props = await (await call("/props")).json();
    const there = { write: props.language, translate: props.translation, classify: props.image };
    for (const tab of tabs) $("tab-" + tab).hidden = there[tab].length === 0;
    const wanted = location.hash.slice(1);
    const shown = tabs.filter((tab) => there[tab].length > 0);
    selectTab(shown.includes(wanted) ? wanted : shown[0]);
    refreshStatus();
    setInterval(refreshStatus, 2000);
    resolve(props);
  }));
});
