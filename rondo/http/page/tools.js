// The Translate and Classify tabs.
"use strict";

// Byte models have tokens that are parts of a character.
const tokenName = (token) => token.replaceAll("\ufffd", "·").replaceAll("\n", "⏎");

// Source tokens across, target tokens down; stronger color means more attention, the strongest cell has all of it.
function showAttention(attention) {
  $("attention").replaceChildren();
  if (!attention) return;
  const table = element("table", null);
  const head = element("tr", null);
  head.append(element("th", ""), ...attention.source.map((token) => element("th", tokenName(token))));
  table.append(head);
  const strongest = Math.max(...attention.weights.flat());
  for (const [t, token] of attention.target.entries()) {
    const row = element("tr", null);
    row.append(element("th", tokenName(token)));
    for (const weight of attention.weights[t]) {
      const cell = element("td", "", { title: weight.toFixed(3) });
      cell.style.background = `rgba(var(--better), ${(weight / strongest).toFixed(2)})`;
      row.append(cell);
    }
    table.append(row);
  }
  const scroll = element("div", null, { className: "scroll", tabIndex: 0 });
  scroll.append(table);
  $("attention").append(element("h2", "Attention from each target token (rows) to the source (columns), first line, last level, mean over heads"), scroll);
}

async function translateText() {
  const reply = await (await post("/translate", {
    q: $("source").value, model: $("translate-model").value, beam: Number($("beam").value),
    alternatives: Number($("alternatives").value), attention: true,
  })).json();
  $("target").value = reply.translatedText;
  const list = element("ol", null);
  const scores = reply.details.length === 1 ? reply.details[0].scores : [];
  for (const [i, text] of [reply.translatedText, ...(reply.alternatives ?? [])].entries()) {
    const item = element("li", text + " ");
    if (scores[i] !== undefined) item.append(element("span", scores[i].toFixed(3), { className: "quiet", title: "log p per token" }));
    list.append(item);
  }
  $("translations").replaceChildren(element("h2", "Best translations"), list);
  showAttention(reply.attention);
}

function showClasses(classes) {
  const bars = classes.map((c) => {
    const bar = element("div", null, { className: "bar" });
    const track = element("div", null, { className: "track" });
    const fill = element("div", null, { className: "fill" });
    fill.style.width = `${100 * c.probability}%`;
    track.append(fill);
    bar.append(element("span", c.name), track, element("span", `${(100 * c.probability).toFixed(1)} %`));
    return bar;
  });
  $("classes").replaceChildren(element("h2", "Most likely classes"), ...bars);
}

function showHeat(heat) {
  $("heat").replaceChildren();
  if (heat?.length) $("heat").append(element("h2", "Attention rollout after each level"));
  for (const level of heat ?? []) {
    const figure = element("figure", null);
    figure.append(element("img", null, { src: "data:image/png;base64," + level.png, alt: level.name }), element("figcaption", level.name));
    $("heat").append(figure);
  }
}

async function classifyImage(file) {
  $("image").src = URL.createObjectURL(file);
  $("image").alt = file.name;
  $("image").hidden = false;
  const path = `/classify?top=5&heat=true&model=${encodeURIComponent($("classify-model").value)}`;
  const reply = await (await call(path, { method: "POST", headers: { "Content-Type": file.type || "application/octet-stream" },
    body: file })).json();
  showClasses(reply.classes);
  showHeat(reply.heat);
}

ready.then((props) => {
  fillModels("translate-model", props.translation);
  fillModels("classify-model", props.image);
  const pair = () => props.translation.find((m) => m.name === $("translate-model").value);
  const showPair = () => { $("source-language").textContent = pair()?.source ?? ""; $("target-language").textContent = pair()?.target ?? ""; };
  $("translate-model").addEventListener("change", showPair);
  showPair();
  $("translate-form").addEventListener("submit", (event) => { event.preventDefault(); guarded(translateText); });
  $("source").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("translate-form").requestSubmit();
  });
  dropZone($("image-drop"), $("image-file"), classifyImage);
});
