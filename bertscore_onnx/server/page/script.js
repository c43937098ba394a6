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

/* The tokens of both texts of an answer, with their weights and best matches. */
function sidesOf(answer) {
  return [["candidate", "reference"], ["reference", "candidate"]].map(([name, other]) =>
    answer[name].map((text, position) => {
      const best = answer[`${name}_matches`][position];
      const similarity = name === "candidate" ? answer.similarity[position][best] : answer.similarity[best][position];
      const weight = answer[`${name}_weights`][position], special = answer[`${name}_special`][position];
      return { text, weight, special, best, similarity, match: answer[other][best] };
    }),
  );
}

/* The similarities of a model are close together: shade them from their mean to 1. */
function shadeOf(answer) {
  const all = answer.similarity.flat();
  const floor = Math.min(Math.max(all.reduce((sum, value) => sum + value, 0) / all.length, 0), 0.99);
  return (similarity) => (Math.min(Math.max((similarity - floor) / (1 - floor), 0), 1) * 0.6).toFixed(3);
}

function labelled(name, token, hasWeights, attributes = {}) {
  const element = make(name, token.text, token.weight ? attributes : { ...attributes, class: "unweighted" });
  if (hasWeights) element.append(make("small", token.weight.toFixed(2)));
  return element;
}

function showTokens(id, tokens, shade, hasWeights) {
  byId(id).replaceChildren(
    ...tokens.filter((token) => !token.special).map((token) => {
      const title = `${token.text} \u2192 ${token.match}: ${fixed(token.similarity)}`;
      const element = labelled("span", token, hasWeights, { title });
      if (token.weight) element.style.setProperty("--warmth", shade(token.similarity));
      return element;
    }),
  );
}

function showList(id, tokens, hasWeights) {
  byId(id).replaceChildren(
    ...tokens.map((token) => {
      const line = make("tr", "");
      line.append(
        labelled("th", token, hasWeights, { scope: "row" }),
        make("td", token.match, { class: "text" }),
        make("td", fixed(token.similarity), { class: "text" }),
      );
      return line;
    }),
  );
}

function showMatches(answer) {
  const [candidate, reference] = sidesOf(answer), shade = shadeOf(answer);
  const weights = [...candidate, ...reference].filter((token) => !token.special).map((token) => token.weight);
  const hasWeights = weights.some((weight) => weight !== 1);
  byId("about-weights").hidden = !hasWeights;
  showTokens("candidate-tokens", candidate, shade, hasWeights);
  showTokens("reference-tokens", reference, shade, hasWeights);
  showList("list", candidate, hasWeights);
  showList("recall-list", reference, hasWeights);
  const top = make("tr", "");
  top.append(
    make("td", "", { class: "text" }),
    ...reference.map((token) => labelled("th", token, hasWeights, { scope: "col" })),
  );
  byId("columns").replaceChildren(top);
  byId("rows").replaceChildren(
    ...candidate.map((token, row) => {
      const line = make("tr", "");
      line.append(labelled("th", token, hasWeights, { scope: "row" }));
      answer.similarity[row].forEach((similarity, column) => {
        const cell = make("td", fixed(similarity));
        cell.style.setProperty("--warmth", shade(similarity));
        cell.classList.toggle("best", column === token.best);
        cell.classList.toggle("best-of-column", row === reference[column].best);
        line.append(cell);
      });
      return line;
    }),
  );
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
  });
  showScore(answer, texts);
  byId("too-long").textContent = answer.too_long;
  byId("too-long").hidden = !answer.too_long;
  byId("matches").hidden = answer.too_long;
  if (!answer.too_long) showMatches(answer);
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
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("model").addEventListener("change", showChoices);
byId("add").addEventListener("click", addReference);
attempt(loadModels);
