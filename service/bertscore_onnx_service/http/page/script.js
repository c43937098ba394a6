"use strict";
const byId = (id) => document.getElementById(id);
const fixed = (number) => number.toFixed(3).replace("-", "\u2212");
let models = [];

function make(name, text, attributes = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/* Send a request, and show the field for a key if the server requires one. */
async function request(path, body) {
  const headers = {};
  if (byId("key").value) headers.Authorization = "Bearer " + byId("key").value.trim();
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Error("The server cannot be reached.");
  }
  if (response.status === 401) {
    const tried = !byId("key-field").hidden && byId("key").value;
    byId("key-field").hidden = false;
    byId("key").focus();
    throw new Error(tried ? "This key is not one of the server’s." : "This server requires an API key.");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || !answer) throw new Error(answer?.error?.message ?? `The server answered ${response.status}.`);
  return answer;
}

function showError(message) {
  byId("error").textContent = message;
  byId("error").hidden = !message;
}

async function loadModels() {
  models = (await request("v1/models")).models;
  byId("model").replaceChildren(...models.map((model) => make("option", model.id, { value: model.id })));
  byId("model-field").hidden = models.length < 2;
  showChoices();
}

/* Offer the idf tables and baselines of the selected model. */
function showChoices() {
  const model = models.find((model) => model.id === byId("model").value);
  for (const [name, none] of [["rescale", "none"], ["idf", "equal"]]) {
    const options = (model?.[name] ?? []).map((value) => make("option", name === "idf" ? `idf: ${value}` : value, { value }));
    byId(`${name}-field`).hidden = options.length === 0;
    byId(name).replaceChildren(make("option", none, { value: "" }), ...options);
  }
}

function addReference() {
  const number = byId("more").childElementCount + 2;
  const field = make("textarea", "", { id: `reference-${number}`, dir: "auto", class: "reference" });
  const line = make("div", "");
  line.append(make("label", `Reference ${number}`, { for: field.id }), field);
  byId("more").append(line);
  field.focus();
}

/* The references, without empty ones after the first. */
function references() {
  const more = [...document.querySelectorAll(".reference")].map((field) => field.value);
  return [byId("reference").value, ...more.filter((text) => text.trim())];
}

function showScore(answer, texts) {
  for (const name of ["precision", "recall", "f1"]) byId(name).textContent = fixed(answer.score[name]);
  byId("signature").textContent = answer.signature;
  const model = models.find((model) => model.id === answer.model);
  byId("made-with").textContent = `Model: ${answer.model}, layer ${model?.layer}`;
  byId("truncated").hidden = !answer.score.truncated;
  byId("truncated").textContent = `A text has more than the model\u2019s ${model?.max_length} tokens: its end does not count.`;
  const best = answer.score.best_reference;
  byId("best").hidden = texts.length < 2;
  byId("best").textContent = `Each is the best of ${texts.length} references. The matches are those of number ` +
    `${best + 1}, which has the best F1: ${texts[best]}`;
}

async function compare() {
  if (!models.length) await loadModels();
  const texts = references();
  const answer = await request("v1/match", {
    candidate: byId("candidate").value,
    references: texts,
    model: byId("model").value,
    idf: byId("idf").value || null,
    rescale: byId("rescale").value || false,
    html: true,
  });
  showScore(answer, texts);
  if (answer.html) byId("matches").innerHTML = answer.html; // texts in it are escaped, and the page's policy allows no script
  else byId("matches").textContent = answer.too_long;
  byId("result").hidden = false;
}

async function attempt(action) {
  showError("");
  byId("go").disabled = true;
  try {
    await action();
  } catch (error) {
    showError(error.message);
    byId("result").hidden = true;
  } finally {
    byId("go").disabled = false;
  }
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(compare);
});
byId("form").addEventListener("invalid", () => {
  byId("result").hidden = true; // the scores are not those of the texts that are there now
}, true);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("model").addEventListener("change", showChoices);
byId("add").addEventListener("click", addReference);
attempt(loadModels);
