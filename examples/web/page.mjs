/** The page: scores the texts in its boxes, and shows the matching tokens and any errors. */

import { pairsOf, rescaling } from "./bertscore.mjs";
import { Files } from "./files.mjs";
import { enginesFor, filesOf, Model, suitableManifest } from "./model.mjs";

const byId = (id) => document.getElementById(id);
const shown = (number) => number.toFixed(3).replace("-", "\u2212");

/** Returns the lines of both boxes, up to the last one that is not empty in both. */
function lines() {
  const sides = ["candidates", "references"].map((id) => byId(id).value.split("\n"));
  const number = Math.max(...sides.map((side) => side.findLastIndex((line) => line) + 1), 1);
  return sides.map((side) => side.slice(0, number));
}

/** Shows the scores of a pair, and the tokens of both sides, each with its nearest token on the other side. */
function show(score, sides, title) {
  const section = byId("pair").content.cloneNode(true).firstElementChild;
  const find = (selector) => section.querySelector(selector);
  find("h2").textContent = title;
  for (const [name, value] of Object.entries(score)) {
    find(`.${name}`).value = value;
    find(`.${name}`).textContent = shown(value);
  }
  const lists = [find(".candidate"), find(".reference")];
  sides.forEach((tokens, side) => {
    const others = sides[1 - side];
    lists[side].append(...tokens.map((token) => button(token, others[token.nearest.place])));
    lists[side].firstElementChild.tabIndex = 0;
    lists[side].addEventListener("keydown", walk);
    for (const event of ["pointerover", "focusin"]) {
      lists[side].addEventListener(event, ({ target }) => {
        const place = [...lists[side].children].indexOf(target);
        if (place >= 0) mark(section, target, lists[1 - side].children[sides[side][place].nearest.place]);
      });
    }
  });
  byId("results").append(section);
}

function button(token, other) {
  const element = document.createElement("button");
  element.type = "button";
  element.tabIndex = -1; // the arrow keys move between tokens
  element.textContent = token.text;
  element.ariaLabel = `${token.text}, nearest ${other.text}, ${shown(token.nearest.similarity)}`;
  element.dataset.match = `${token.text} \u2192 ${other.text}: ${shown(token.nearest.similarity)}`;
  element.classList.toggle("unweighted", !token.weighs);
  if (token.weighs) element.style.setProperty("--shade", token.nearest.shade.toFixed(3));
  else element.dir = "ltr"; // so that the text alone sets the direction of the list
  return element;
}

/** Marks a token and its nearest one, and shows their similarity. */
function mark(section, token, nearest) {
  for (const element of section.querySelectorAll(".nearest")) element.classList.remove("nearest");
  token.classList.add("nearest");
  nearest.classList.add("nearest");
  section.querySelector(".match").textContent = token.dataset.match;
}

/** Moves the focus among the tokens of a text. */
function walk(event) {
  const list = event.currentTarget;
  const tokens = [...list.children];
  const forward = getComputedStyle(list).direction === "rtl" ? -1 : 1;
  const steps = { ArrowRight: forward, ArrowLeft: -forward, Home: -tokens.length, End: tokens.length };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const place = tokens.indexOf(document.activeElement);
  const next = tokens[Math.min(Math.max(place + steps[event.key], 0), tokens.length - 1)];
  tokens[place].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

async function compare(model) {
  const pairs = pairsOf(...lines());
  const rescale = rescaling(model.manifest, byId("rescale").value);
  const { scores, numCut } = await model.scorer.score(pairs);
  byId("cut").textContent = `Longer than the model takes: ${numCut}. The ends of such texts are not scored.`;
  byId("cut").hidden = !numCut;
  for (const [place, texts] of pairs.entries()) {
    const title = pairs.length > 1 ? `Pair ${place + 1}` : "Scores";
    show(rescale(scores[place]), await model.match(texts), title);
  }
}

/** Runs a slow action, with a status message meanwhile and another one afterwards, and shows its error if it fails. */
async function attempt(doing, action) {
  byId("go").disabled = true;
  byId("error").hidden = true;
  byId("status").textContent = doing;
  let after = "";
  try {
    after = await action();
    byId("go").disabled = false;
  } catch (error) {
    byId("error").textContent = error.message ?? String(error);
    byId("error").hidden = false;
    byId("go").disabled = !engines;
  }
  byId("status").textContent = after;
}

/** Returns a function that loads the model at its first call, while a bar shows the progress. */
function loader(manifest, files, total) {
  let model = null;
  return async () => {
    if (model) return model;
    const progress = byId("progress");
    progress.hidden = !total;
    progress.max = total || 1;
    progress.value = 0;
    try {
      model = await Model.load(manifest, engines, files, (more) => {
        progress.value += more;
      });
    } finally {
      progress.hidden = true;
    }
    files.keep();
    return model;
  };
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
const since = (start) => `${((performance.now() - start) / 1000).toFixed(2)} s`;
let engines = null;
let load = null;

/** Fills the boxes with the texts in the address, if it has any. */
function readAddress() {
  const texts = new URLSearchParams(location.hash.slice(1));
  for (const id of ["candidates", "references"]) if (texts.has(id)) byId(id).value = texts.get(id);
}

readAddress();
addEventListener("hashchange", readAddress);
await attempt("Looking for the model…", async () => {
  const files = await Files.load();
  const manifest = await suitableManifest();
  byId("rescale").append(...Object.keys(manifest.baselines).map((language) => new Option(language, language)));
  byId("rescale-field").hidden = byId("rescale").length < 2;
  const found = await enginesFor(manifest);
  const total = await files.missing(filesOf(found[0]));
  engines = found;
  load = loader(manifest, files, total);
  byId("share").disabled = false;
  if (!total) return "The model is kept in this browser; nothing has to be loaded.";
  return `The first comparison loads the model, ${megabytes(total)}, which this browser then keeps.`;
});
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("go").click();
});
byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const start = performance.now();
  byId("results").replaceChildren();
  for (const id of ["results", "cut", "legend"]) byId(id).hidden = true;
  await attempt("Comparing…", async () => {
    const model = await load();
    const loaded = since(start);
    const before = performance.now();
    await compare(model);
    byId("timing").textContent = `Model ready after ${loaded}, compared in ${since(before)} with ${model.engine}.`;
    return "";
  });
  for (const id of ["results", "legend"]) byId(id).hidden = !byId("results").childElementCount;
});
byId("share").addEventListener("click", async () => {
  const texts = ["candidates", "references"].map((id) => [id, byId(id).value]);
  history.replaceState(null, "", `#${new URLSearchParams(texts)}`);
  const isCopied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  const how = isCopied ? "The link is copied" : "The link is in the address bar";
  byId("status").textContent = `${how}. It holds the texts in the part that browsers do not send to servers.`;
});
