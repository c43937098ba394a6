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

/* Ask the server; ask the person for a key where the server wants one. */
async function ask(path, body) {
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
    throw new Error(tried ? "This key is not one of the server’s." : "This server asks for an API key.");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || !answer) throw new Error(answer?.error?.message ?? `The server answered ${response.status}.`);
  return answer;
}

function tell(message) {
  byId("error").textContent = message;
  byId("error").hidden = !message;
}

async function loadModels() {
  models = (await ask("v1/models")).models;
  byId("model").replaceChildren(...models.map((model) => make("option", model.id, { value: model.id })));
  byId("model-field").hidden = models.length < 2;
  showLanguages();
}

function showLanguages() {
  const languages = models.find((model) => model.id === byId("model").value)?.rescale ?? [];
  const options = [make("option", "none", { value: "" })];
  options.push(...languages.map((language) => make("option", language, { value: language })));
  byId("rescale").replaceChildren(...options);
  byId("rescale-field").hidden = languages.length === 0;
}

function header(token, weight, scope) {
  return make("th", token, weight ? { scope } : { scope, class: "unweighted" });
}

function showMatches(answer) {
  const titles = answer.reference.map((token, column) => header(token, answer.reference_weights[column], "col"));
  const top = make("tr", "");
  top.append(make("td", "", { class: "text" }), ...titles);
  byId("columns").replaceChildren(top);
  const rows = [], list = [];
  answer.similarity.forEach((similarities, row) => {
    const best = similarities.indexOf(Math.max(...similarities));
    const token = answer.candidate[row], weight = answer.candidate_weights[row];
    const line = make("tr", "");
    line.append(header(token, weight, "row"));
    similarities.forEach((similarity, column) => {
      const cell = make("td", fixed(similarity));
      cell.style.setProperty("--warmth", (Math.max(0, similarity) ** 2 * 0.62).toFixed(3));
      if (column === best) cell.className = "best";
      line.append(cell);
    });
    rows.push(line);
    const entry = make("tr", "");
    entry.append(
      header(token, weight, "row"),
      make("td", answer.reference[best], { class: "text" }),
      make("td", fixed(similarities[best]), { class: "text" }),
    );
    list.push(entry);
  });
  byId("rows").replaceChildren(...rows);
  byId("list").replaceChildren(...list);
}

async function compare() {
  if (!models.length) await loadModels();
  const answer = await ask("v1/match", {
    candidate: byId("candidate").value,
    reference: byId("reference").value,
    model: byId("model").value,
    rescale: byId("rescale").value || false,
  });
  for (const name of ["precision", "recall", "f1"]) byId(name).textContent = fixed(answer.score[name]);
  byId("signature").textContent = answer.signature;
  showMatches(answer);
  byId("result").hidden = false;
}

async function attempt(action) {
  tell("");
  byId("go").disabled = true;
  try {
    await action();
  } catch (error) {
    tell(error.message);
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
byId("model").addEventListener("change", showLanguages);
attempt(loadModels);
